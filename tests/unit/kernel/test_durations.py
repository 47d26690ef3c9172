from __future__ import annotations

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from scheduler_project.kernel.durations import LONGEST, format_duration, parse_duration
from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

MILLISECOND = timedelta(milliseconds=1)


@given(st.integers(0, LONGEST // MILLISECOND))
def test_what_is_formatted_reads_back_as_the_same_length(millis: int) -> None:
    length = millis * MILLISECOND
    assert parse_duration(format_duration(length)) == length


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90),
        ("5m", 300),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("1.5h", 5400),
        (" 1 H 30 M ", 5400),
        ("2w", 1209600),
        ("1d", 86400),
        ("0", 0),
        ("45", 45),
        (45, 45),
        (0, 0),
        (timedelta(minutes=1), 60),
    ],
)
def test_what_people_write(text: object, seconds: float) -> None:
    assert parse_duration(text) == timedelta(seconds=seconds)


@pytest.mark.parametrize(
    "value",
    [
        "", " ", "m", "5x", "5 minutes", "-5m", "1h-5m", "5m5", "٣s", "1e3s", "1.s", ".5s", "inf", "nan",
        "999999999w", "999999999w999999999w", "3661d", "9" * 11, 10**10, 10**400, -1, True, None, 1.5, [], {},
        b"5m",
    ],
)  # fmt: skip
def test_nonsense_is_refused_with_the_value_and_the_field(value: object) -> None:
    with pytest.raises(InvalidValue) as refused:
        parse_duration(value, field="retryDelay")
    assert shown(value) in refused.value.message
    assert refused.value.field == "retryDelay"


@given(st.text() | st.from_regex(r"([0-9]{1,9}(\.[0-9]{1,6})?(ms|[wdhms])){1,9}", fullmatch=True))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        length = parse_duration(text)
    except InvalidValue:
        return
    assert timedelta(0) <= length <= LONGEST
    assert parse_duration(format_duration(length)) == length


@pytest.mark.parametrize(
    "value",
    ["0.1ms", "1.0001s", "0.0001ms", "1.000001s", "0.333333h", "1ms0.5ms0.1ms", timedelta(microseconds=1)],
)
def test_parts_of_a_millisecond_are_refused_and_not_dropped(value: object) -> None:
    with pytest.raises(InvalidValue, match="is too fine: lengths are whole milliseconds"):
        parse_duration(value)


def test_less_than_the_least_is_refused_with_both_ends() -> None:
    with pytest.raises(InvalidValue, match="'500ms' is not between 1s and 3660d"):
        parse_duration("500ms", minimum=timedelta(seconds=1))


@pytest.mark.parametrize(
    ("length", "text"),
    [
        (timedelta(0), "0s"),
        (timedelta(hours=1, minutes=30), "1h30m"),
        (timedelta(days=8, milliseconds=5), "8d5ms"),
        (-timedelta(seconds=5), "-5s"),
    ],
)
def test_the_shortest_text(length: timedelta, text: str) -> None:
    assert format_duration(length) == text
