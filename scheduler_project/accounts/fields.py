"""What the bodies and addresses of users and groups hold, read and documented."""

from __future__ import annotations

import re
from typing import Any

from executions.api.bodies import text
from executions.api.parameters import whole_number
from executions.api.reads import Reads, reads
from scheduler_project.kernel.errors import InvalidValue, NotFound
from scheduler_project.kernel.texts import shown

LARGEST_ID = 2**31 - 1
MOST_NAMES = 1000
MAX_PASSWORD = 4096
_CONTROL = r"\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069"
_EDGE = rf"[^\s{_CONTROL}]"
LINE = re.compile(rf"^({_EDGE}([^{_CONTROL}]*{_EDGE})?)?$")
ID = whole_number(1, LARGEST_ID)


def line(longest: int, *, blank: bool = False, **schema: Any) -> Reads[str]:
    """One line of at most ``longest`` characters that shows as it is."""
    least = 0 if blank else 1

    @reads(type="string", minLength=least, maxLength=longest, pattern=LINE.pattern, **schema)
    def read(value: object, name: str) -> str:
        found = text(value, name)
        if not LINE.fullmatch(found):
            raise InvalidValue(
                f"{shown(found)} is not one line of text without blanks around it.", field=name
            )
        if not least <= len(found) <= longest:
            raise InvalidValue(
                f"{shown(found)} has {len(found)} characters, and {least} to {longest} are allowed.",
                field=name,
            )
        return found

    return read


def names(kind: str) -> Reads[tuple[str, ...]]:
    """A list of names, each once; in which order does not count."""
    items = {"type": "string", "format": kind}

    @reads(type="array", items=items, uniqueItems=True, maxItems=MOST_NAMES)
    def read(value: object, name: str) -> tuple[str, ...]:
        if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
            raise InvalidValue(f"{shown(value)} is not a list of names.", field=name)
        if len(set(value)) != len(value) or len(value) > MOST_NAMES:
            raise InvalidValue(f"At most {MOST_NAMES} names are allowed, each once.", field=name)
        if any("\0" in each for each in value):
            raise InvalidValue("A NUL character is not allowed.", field=name)
        return tuple(sorted(value))

    return read


@reads(type=["string", "null"], minLength=1, maxLength=MAX_PASSWORD, format="password", writeOnly=True)
def password(value: object, name: str) -> str | None:
    """The message does not repeat it."""
    if value is not None and (not isinstance(value, str) or not 1 <= len(value) <= MAX_PASSWORD):
        raise InvalidValue(f"A text of 1 to {MAX_PASSWORD} characters, or null, is needed.", field=name)
    return value


def number(value: str, kind: str) -> int:
    """The id in an address. NotFound for what is none: there is nothing of that name."""
    try:
        return ID(value, kind)
    except InvalidValue:
        raise NotFound(f"There is no {kind} {shown(value)}.") from None
