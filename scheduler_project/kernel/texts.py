"""What a text must not hold where it is going, and how a value is shown in a message (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping

MOST_WRITTEN = 100_000
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


def escaped_lines(text: str) -> str:
    """``text`` of several lines as ``escaped`` has it, lines and tabs as they are."""
    return re.sub(r"[^\n\t]+", lambda found: escaped(found[0]), text)


def shown(value: object) -> str:
    """``value`` as a message repeats it: on one line, and never long."""
    if not isinstance(value, str) and outgrows(value, MOST_WRITTEN):
        return f"a {type(value).__name__} of more than {MOST_WRITTEN} characters"
    try:
        return shortened(repr(value), 100)
    except RecursionError:
        return f"a {type(value).__name__} that is nested very deep"
    except ValueError:  # Python writes no number of more than 4300 digits
        return "a number of thousands of digits"


def outgrows(value: object, most: int) -> bool:
    """Whether ``value``, as JSON, has more than ``most`` characters; it is not written to be measured.

    What stands in several places (an anchor in YAML) counts in each: a file of a hundred characters
    can stand for more than any memory holds. What only blanks and signs bring above ``most`` may pass.
    """
    waiting, left = [value], most
    while waiting:
        item = waiting.pop()
        left -= 1 + (len(item) if isinstance(item, str | Mapping | list | tuple) else 0)
        if left < 0:
            return True
        if isinstance(item, Mapping):
            waiting += (*item.keys(), *item.values())
        elif isinstance(item, list | tuple):
            waiting += item
    return False


def shortened(text: str, most: int = 400) -> str:
    """``text`` in at most ``most`` characters; where it is cut, they end with how long it was."""
    if len(text) <= most:
        return text
    note = f"… ({len(text)} characters)"
    return text[: most - len(note)] + note
