"""What a text must not hold where it is going, and how a value is shown in a message (pure)."""

from __future__ import annotations

import re

_SURROGATE = re.compile("[\ud800-\udfff]")
# C0, DEL, C1, line and paragraph separators, and what turns the direction of writing around.
_CONTROL = re.compile("[\0-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")


def unsendable(text: str) -> str:
    """Why no program, no database and no UTF-8 file can be given ``text``; empty where they can."""
    if "\0" in text:
        return "A NUL character is not allowed."
    return "A half of a surrogate pair is not a character." if _SURROGATE.search(text) else ""


def control_character(text: str) -> str:
    """The first character of ``text`` that a terminal or a reader obeys instead of showing it, or empty."""
    found = _CONTROL.search(text)
    return found[0] if found else ""


def escaped(text: str) -> str:
    """``text`` with such characters written out, for a terminal."""
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)


def shown(value: object) -> str:
    """``value`` as a message repeats it: on one line, and never long."""
    return shortened(repr(value), 100)


def shortened(text: str, most: int = 400) -> str:
    """``text`` in at most ``most`` characters; where it is cut, they end with how long it was."""
    if len(text) <= most:
        return text
    note = f"… ({len(text)} characters)"
    return text[: most - len(note)] + note
