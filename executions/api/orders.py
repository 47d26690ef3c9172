"""Orders of a list that is read page by page: by a column, and by the id where that is the same.

A cursor is where a page ends: the id, and the column's value behind it.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from uuid import UUID

from django.db.models import Model, Q, QuerySet

from executions.api.reads import Reads
from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

Rows = TypeVar("Rows", bound=Model)
LONGEST = 1000


@dataclass(frozen=True, slots=True)
class Place:
    """``value``: the column's, as text; empty in the order of the ids."""

    id: UUID
    value: str = ""

    def __str__(self) -> str:
        return _encoded(self.id.bytes + self.value.encode())


def _read_place(text: str, name: str) -> Place:
    try:
        raw = _decoded(text)
        value = raw[16:].decode()
    except (ValueError, binascii.Error):
        raw, value = b"", ""
    if not 16 <= len(raw) <= LONGEST or "\0" in value:
        raise InvalidValue(f"{shown(text)} is not a cursor: take the one in `next`.", field=name)
    return Place(UUID(bytes=raw[:16]), value)


place = Reads(
    _read_place, {"type": "string", "pattern": "^[A-Za-z0-9_-]{22,}$", "format": "cursor", "maxLength": 1334}
).saying("Where the page begins: the one in the `next` of the page before.")


def _read_name(text: str, name: str) -> str:
    try:
        value = _decoded(text).decode()
    except (ValueError, binascii.Error):
        value = ""
    if not value or "\0" in value:
        raise InvalidValue(f"{shown(text)} is not a cursor: take the one in `next`.", field=name)
    return value


name_place = Reads(
    _read_name, {"type": "string", "pattern": "^[A-Za-z0-9_-]+$", "format": "name-cursor"}
).saying("Where the page begins: the one in the `next` of the page before.")
"""The place in a list that is in the order of unique names."""


def name_cursor(name: str) -> str:
    return _encoded(name.encode())


def _encoded(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")


def _decoded(text: str) -> bytes:
    """ValueError, binascii.Error."""
    return base64.b64decode(text + "=" * (-len(text) % 4), altchars=b"-_", validate=True)


@dataclass(frozen=True, slots=True)
class Orders:
    """``columns``: what a list may be ordered by, by its name in REST."""

    columns: Mapping[str, str]

    @property
    def parameter(self) -> Reads[str]:
        names = [sign + name for name in self.columns for sign in ("", "-")]

        def read(value: str, name: str) -> str:
            if value not in names:
                raise InvalidValue(f"{shown(value)} is not one of {', '.join(names)}.", field=name)
            return value

        return Reads(read, {"type": "string", "enum": names}).saying(
            "What the list is ordered by; with `-` downwards; default: by the ids."
        )

    def page(self, rows: QuerySet[Rows], order: str | None, after: Place | None, limit: int) -> list[Rows]:
        """At most ``limit`` rows behind a place. InvalidValue: it is a place in another order."""
        if order is None:
            rows = rows if after is None else rows.filter(id__gt=after.id)
            return list(rows.order_by("id")[:limit])
        column, downwards = self.columns[order.removeprefix("-")], order.startswith("-")
        if after is not None:
            value, step = self._value(rows, column, after), "lt" if downwards else "gt"
            rows = rows.filter(
                Q(**{f"{column}__{step}": value}) | Q(**{column: value, f"id__{step}": after.id})
            )
        sign = "-" if downwards else ""
        return list(rows.order_by(f"{sign}{column}", f"{sign}id")[:limit])

    def place_of(self, row: Any, order: str | None) -> Place:
        """Where a page ends whose last row is this."""
        if order is None:
            return Place(row.id)
        value = getattr(row, self.columns[order.removeprefix("-")])
        return Place(row.id, value.isoformat() if isinstance(value, datetime) else str(value))

    def _value(self, rows: QuerySet[Any], column: str, after: Place) -> Any:
        if rows.model._meta.get_field(column).get_internal_type() != "DateTimeField":
            return after.value
        try:
            return datetime.fromisoformat(after.value)
        except ValueError:
            message = "It is a place in a list of another order: take the one in `next`."
            raise InvalidValue(message, field="cursor") from None
