"""Exit codes as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.exit_codes import codes_text, read_codes
from scheduler_project.kernel.errors import InvalidValue


@pytest.mark.parametrize(
    ("text", "codes"),
    [
        ("", []),
        (" , ", []),
        ("75", [75]),
        ("1, 75,100-103,", [1, 75, 100, 101, 102, 103]),
        ("3 - 5, 7–8", [3, 4, 5, 7, 8]),
        ("9, 8-10, 9", [9, 8, 10]),
        ("255-255", [255]),
    ],
)
def test_codes_and_ranges_are_read(text: str, codes: list[int]) -> None:
    assert read_codes(text) == codes


@pytest.mark.parametrize(
    "part", ["0", "256", "-1", "1-", "5-3", "1-2-3", "0-3", "1-999999999", "x", "1.5", "1 2", "٣", "9" * 5000]
)
def test_what_is_no_code_is_named_with_what_is_allowed(part: str) -> None:
    with pytest.raises(InvalidValue) as refused:
        read_codes(f"1, {part}")
    assert part[:20] in refused.value.message
    assert "from 1 to 255 and ranges" in refused.value.message


def test_neighbours_are_shown_as_a_range() -> None:
    assert codes_text((110, 1, 2, 75, 108, 109, 75)) == "1, 2, 75, 108-110"


@given(st.sets(st.integers(1, 255)))
def test_what_is_shown_is_read_back(codes: set[int]) -> None:
    assert read_codes(codes_text(codes)) == sorted(codes)
