"""JSON bodies, read strictly: what passes here can be stored, shown and sent on."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any, NoReturn

from rest_framework.exceptions import APIException, ParseError
from rest_framework.parsers import BaseParser

from scheduler_project.kernel.errors import InvalidFields, complaints
from scheduler_project.kernel.texts import shortened, shown

MAX_BODY_BYTES = 2 << 20
MOST_FAULTS = 100
MAX_DEPTH = 64
_SURROGATE = re.compile("[\ud800-\udfff]")


class BodyTooLarge(APIException):
    status_code = 413
    default_detail = f"The body is larger than {MAX_BODY_BYTES} bytes."
    default_code = "too_large"


class StrictJSONParser(BaseParser):
    """One JSON object of at most MAX_BODY_BYTES in UTF-8, nested at most MAX_DEPTH deep.

    Refused: NaN and Infinity, halves of surrogate pairs (neither UTF-8 nor PostgreSQL can hold
    them), a name that comes twice in an object.
    """

    media_type = "application/json"

    def parse(
        self, stream: Any, media_type: str | None = None, parser_context: Mapping[str, Any] | None = None
    ) -> dict[str, Any]:
        raw = stream.read(MAX_BODY_BYTES + 1)
        if len(raw) > MAX_BODY_BYTES:
            raise BodyTooLarge
        return read_object(raw)


def read_object(raw: bytes) -> dict[str, Any]:
    """The object in ``raw``. ParseError for what is none, InvalidFields for texts that cannot be stored."""
    try:
        found = json.loads(raw.decode(), parse_constant=_refuse_constant, object_pairs_hook=_pairs)
    except RecursionError:
        raise ParseError(f"The body is nested more than {MAX_DEPTH} deep.") from None
    except ValueError as error:  # UnicodeDecodeError and JSONDecodeError too
        raise ParseError(f"The body is not JSON: {error}.") from None
    if not isinstance(found, dict):
        raise ParseError("The body is not a JSON object: { … }.")
    wrong = {_path(place): text for place, text in islice(_faults(found), MOST_FAULTS)}
    if wrong:
        raise InvalidFields(complaints(wrong, lambda name: wrong[str(name)]))
    return found


_Place = tuple[Any, ...]  # (where the holder is, the name or number in it), empty at the top


def _faults(body: dict[str, Any]) -> Iterator[tuple[_Place, str]]:
    """What is wrong with the depth or any text below ``body``, and where; walks without recursion."""
    waiting: list[tuple[int, _Place, dict[str, Any] | list[Any]]] = [(0, (), body)]
    while waiting:
        depth, place, holder = waiting.pop()
        if holder and depth >= MAX_DEPTH:
            yield place, f"It is nested more than {MAX_DEPTH} deep."
            continue
        for name, item in holder.items() if isinstance(holder, dict) else enumerate(holder):
            if isinstance(item, dict | list):
                waiting.append((depth + 1, (place, name), item))
            if any(isinstance(text, str) and _SURROGATE.search(text) for text in (name, item)):
                yield (place, name), "A half of a surrogate pair is not a character."


def _path(place: _Place) -> str:
    """Names with dots between them; for what is wrong only, since names may be long, and hold much."""
    names: list[str] = []
    while place:
        names.append(shortened(_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", str(place[1])), 100))
        place = place[0]
    return ".".join(reversed(names))


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a JSON number")


def _pairs(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        seen: set[str] = set()
        twice = next(name for name, _ in pairs if name in seen or seen.add(name))  # type: ignore[func-returns-value]
        raise ValueError(f"{shown(twice)} is there twice in one object")
    return found
