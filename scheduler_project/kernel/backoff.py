"""How long to wait before trying again."""

from __future__ import annotations

from collections.abc import Iterator


def exponential(first: float = 0.1, factor: float = 2.0, cap: float = 10.0) -> Iterator[float]:
    """Seconds to wait before each repetition: ``first``, then ``factor`` times the last, at most ``cap``."""
    delay = first
    while True:
        yield min(delay, cap)
        delay = min(delay * factor, cap)
