"""Query parameters, read and checked as a whole; what is unknown or wrong is named in a 400."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.http import QueryDict

from executions.api.reads import Reads, is_needed, reads
from executions.states import State
from scheduler_project.kernel.clock import EPOCH, LATEST
from scheduler_project.kernel.errors import InvalidFields, InvalidValue, NotFound, complaints
from scheduler_project.kernel.texts import shown

Reader = Callable[[str, str], Any]
DEFAULT_LIMIT = 50
MAX_LIMIT = 100
INSTANT: dict[str, Any] = {
    "type": "string",
    "format": "date-time",
    "pattern": r"^(19[7-9][0-9]|2[0-9]{3})-[0-9]{2}-[0-9]{2}T[0-9:.]+(Z|[+-][0-9]{2}:[0-9]{2})$",
    "examples": ["2026-12-24T18:00:00Z"],
}
_STATES = "|".join(State)
UUID_TEXT: dict[str, Any] = {"type": "string", "format": "uuid"}


def read_query(given: QueryDict, readers: Mapping[str, Reader]) -> dict[str, Any]:
    """The parameters that are there, read by ``readers``. InvalidFields for all that are wrong."""
    values: dict[str, Any] = {}
    allowed = ", ".join(readers) or "none"
    errors = complaints(
        (name for name in given if name not in readers),
        lambda name: f"{shown(name)} is not a parameter here. Allowed: {allowed}.",
    )
    for name in given.keys() & readers.keys():
        try:
            values[name] = _read(given, name, readers)
        except InvalidValue as error:
            errors[name] = [error.message]
    errors |= {
        name: ["This parameter is required."]
        for name, reader in readers.items()
        if is_needed(reader) and name not in given
    }
    if errors:
        raise InvalidFields(errors)
    return values


def _read(given: QueryDict, name: str, readers: Mapping[str, Reader]) -> Any:
    texts = given.getlist(name)
    if len(texts) != 1:
        raise InvalidValue("This parameter is there more than once.", field=name)
    return readers[name](texts[0], name)


@reads(type="string", minLength=1, pattern="^[^\\x00]+$")
def text(value: str, name: str) -> str:
    if not value or "\0" in value:
        raise InvalidValue("A text without NUL characters is needed.", field=name)
    return value


@reads(**UUID_TEXT)
def uuid(value: str, name: str) -> UUID:
    found = _uuid(value)
    if found is None:
        raise InvalidValue(f"{shown(value)} is not a UUID.", field=name)
    return found


EXECUTION_ID = {"execution_id": uuid.saying("The run's id.")}


@reads(type="string", pattern=f"^({_STATES})( *, *({_STATES}))*$")
def states(value: str, name: str) -> list[State]:
    """One status, or several with commas between them."""
    try:
        return [State(item.strip()) for item in value.split(",")]
    except ValueError:
        raise InvalidValue(f"{shown(value)} is not one of {', '.join(State)}.", field=name) from None


@reads(**INSTANT)
def instant(value: str, name: str) -> datetime:
    try:
        found = datetime.fromisoformat(value)
    except ValueError:
        found = None
    if found is None or found.tzinfo is None:
        lost = " (in an address, + is written %2B)" if " " in value else ""
        raise InvalidValue(
            f"{shown(value)} is not an instant with its offset, such as 2026-12-24T18:00:00Z{lost}.",
            field=name,
        )
    if not EPOCH <= found < LATEST:
        raise InvalidValue(f"{shown(value)} is not allowed: years are 1970 to 2999.", field=name)
    return found.astimezone(UTC)


def whole_number(least: int, most: int) -> Reads[int]:
    @reads(type="integer", minimum=least, maximum=most)
    def read(value: str, name: str) -> int:
        plain = value.isascii() and value.isdigit() and len(value) <= len(str(most))
        if not plain or not least <= int(value) <= most:
            raise InvalidValue(f"{shown(value)} is not a whole number from {least} to {most}.", field=name)
        return int(value)

    return read


limit = whole_number(1, MAX_LIMIT).saying("How many results a page has at most.", default=DEFAULT_LIMIT)


@reads(type="boolean")
def flag(value: str, name: str) -> bool:
    if value not in ("true", "false"):
        raise InvalidValue(f"{shown(value)} is neither true nor false.", field=name)
    return value == "true"


def _cursor(value: str, name: str) -> UUID:
    """The place in a list that ``cursor_text`` wrote."""
    try:
        raw = base64.b64decode(value + "==", altchars=b"-_", validate=True)
    except (ValueError, binascii.Error):
        raw = b""
    if len(raw) != 16:
        raise InvalidValue(f"{shown(value)} is not a cursor: take the one in `next`.", field=name)
    return UUID(bytes=raw)


cursor = Reads(_cursor, {"type": "string", "pattern": "^[A-Za-z0-9_-]{22}$"}).saying(
    "Where the page begins: the one in the `next` of the page before."
)


def cursor_text(place: UUID) -> str:
    return base64.urlsafe_b64encode(place.bytes).decode().rstrip("=")


def identity(value: str) -> UUID:
    """The UUID in an address. NotFound for what is none: there is nothing of that name."""
    found = _uuid(value)
    if found is None:
        raise NotFound(f"{shown(value)} is not a UUID.")
    return found


def _uuid(value: str) -> UUID | None:
    try:
        return UUID(value) if len(value) == 36 else None
    except ValueError:
        return None
