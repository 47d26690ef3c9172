"""How a refused value is shown in the message."""

from __future__ import annotations

LONGEST_SHOWN = 100


def shown(value: object) -> str:
    """The value as it was written, cut where it is long: a message must not grow with what was sent."""
    text = repr(value)
    return text if len(text) <= LONGEST_SHOWN else text[: LONGEST_SHOWN - 1] + "…"
