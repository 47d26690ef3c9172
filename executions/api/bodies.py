"""JSON bodies of a few fields, read and checked as a whole."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Any
from uuid import UUID

from executions.api import parameters
from executions.api.reads import Reads, reads
from scheduler_project.kernel.errors import InvalidFields, InvalidValue, complaints
from scheduler_project.kernel.texts import shown

Reader = Callable[[Any, str], Any]


def read_body(
    body: Mapping[str, Any], readers: Mapping[str, Reader], *, required: Sequence[str] = ()
) -> dict[str, Any]:
    """The fields that are there. InvalidFields for whatever is missing, unknown or not allowed."""
    errors = complaints(
        (name for name in body if name not in readers),
        lambda name: f"{shown(name)} is not a field here. Allowed: {', '.join(readers)}.",
    )
    values: dict[str, Any] = {}
    for name, read in readers.items():
        if name in body:
            try:
                values[name] = read(body[name], name)
            except InvalidValue as error:
                errors[name] = [error.message]
    errors.update({name: ["This field is required."] for name in required if name not in body})
    if errors:
        raise InvalidFields(errors)
    return values


@reads(type="string")
def text(value: object, name: str) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"{shown(value)} is not a text.", field=name)
    return value


@reads(**parameters.INSTANT)
def instant(value: object, name: str) -> datetime:
    return parameters.instant(text(value, name), name)


@reads(**parameters.UUID_TEXT)
def uuid(value: object, name: str) -> UUID:
    return parameters.uuid(text(value, name), name)


@reads(type="boolean")
def boolean(value: object, name: str) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue(f"{shown(value)} is not true or false.", field=name)
    return value


def whole_number(least: int, most: int) -> Reads[int]:
    @reads(type="integer", minimum=least, maximum=most)
    def read(value: object, name: str) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidValue(f"{shown(value)} is not a whole number from {least} to {most}.", field=name)
        return value

    return read
