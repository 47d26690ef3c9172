"""Addresses of the internet protocol, in one form."""

from __future__ import annotations

from ipaddress import ip_address


def plain_address(text: str) -> str | None:
    """In its shortest form; one of IPv4 that is written as IPv6 (``::ffff:192.0.2.1``) as what it is."""
    try:
        found = ip_address(text.partition("%")[0])
    except ValueError:
        return None
    mapped = getattr(found, "ipv4_mapped", None)
    return str(mapped or found)
