"""Who is there, behind proxies: the entry that the outermost trusted proxy wrote, and no other."""

from __future__ import annotations

import pytest

from scheduler_project.kernel.addresses import plain_address
from scheduler_project.web.addresses import forwarded_address


@pytest.mark.parametrize(
    ("forwarded", "proxies", "found"),
    [
        ("192.0.2.1", 0, None),  # nobody is trusted
        ("192.0.2.1", 1, "192.0.2.1"),
        ("6.6.6.6, 192.0.2.1", 1, "192.0.2.1"),  # what the client wrote stands left
        ("6.6.6.6, 192.0.2.1, 10.0.0.1", 2, "192.0.2.1"),
        ("192.0.2.1", 2, None),  # it did not come through both
        ("", 1, None),
        ("192.0.2.1,", 1, None),
        ("unknown", 1, None),
        ("<script>", 1, None),
        ("192.0.2.1:4711", 1, "192.0.2.1"),
        ("[2001:db8::1]:4711", 1, "2001:db8::1"),
        ("2001:DB8:0::1", 1, "2001:db8::1"),
        ("[2001:db8::1", 1, "2001:db8::1"),
        ("a" * 100_000, 1, None),
    ],
)
def test_the_address_that_is_vouched_for(forwarded: str, proxies: int, found: str | None) -> None:
    assert forwarded_address(forwarded, proxies) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [("::ffff:192.0.2.1", "192.0.2.1"), ("fe80::1%eth0", "fe80::1"), ("localhost", None), ("", None)],
)
def test_an_address_has_one_form(text: str, found: str | None) -> None:
    assert plain_address(text) == found
