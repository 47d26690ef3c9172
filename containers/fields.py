"""Reads a JSON object field by field; all that is wrong is collected, each by its path (pure).

A reader takes a value and gives what it means, or raises InvalidValue; which field it was is known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from fractions import Fraction
from typing import Any, TypeVar

from scheduler_project.kernel.errors import InvalidValue, complaints
from scheduler_project.kernel.texts import control_character, shown, unsendable

MOST_ITEMS = 100
MOST_TEXT = 4096
BINARY_UNITS = {"Ki": 1 << 10, "Mi": 1 << 20, "Gi": 1 << 30, "Ti": 1 << 40}
DECIMAL_UNITS = {"k": 10**3, "M": 10**6, "G": 10**9, "T": 10**12}
_SIZE = re.compile(r"([0-9]{1,18})(Ki|Mi|Gi|Ti|k|M|G|T)?", re.ASCII)
_CPUS = re.compile(r"([0-9]{1,6})(?:\.[0-9]{1,3})?|[0-9]{1,7}m", re.ASCII)
_PATH = re.compile(r"/|(?:/[^/:,]+)+")
MOST_BYTES = 1 << 50
MOST_CPUS = 1024

T = TypeVar("T")
Errors = dict[str, list[str]]
Reader = Callable[[Any], T]


class Fields:
    """The fields of one object. ``known``: all that it may have; null is as good as left out."""

    def __init__(self, given: object, path: str, known: Sequence[str], errors: Errors) -> None:
        self.path = path
        self.errors = errors
        self._given: Mapping[Any, Any] = {}
        if not isinstance(given, Mapping):
            errors[path] = [f"{shown(given)} is not an object. Allowed: an object of {', '.join(known)}."]
            return
        self._given = given
        allowed = ", ".join(known)
        unknown = complaints(
            (name for name in given if name not in known),
            lambda name: f"{shown(name)} is not a field here. Allowed: {allowed}.",
        )
        errors |= {f"{path}.{_shown_key(name)}": texts for name, texts in unknown.items()}

    def get(self, name: str, read: Reader[T], default: T) -> T:
        """What the field means; ``default`` where it is left out, and where it is wrong, which is noted."""
        value = self._given.get(name)
        if value is None:
            return default
        try:
            return read(value)
        except InvalidValue as error:
            self.complain(name, error.message)
            return default

    def within(self, name: str, known: Sequence[str]) -> Fields:
        """The fields of the object in that field."""
        value = self._given.get(name)
        return Fields({} if value is None else value, f"{self.path}.{name}", known, self.errors)

    def items(self, name: str) -> list[tuple[str, Any]]:
        """The items of the list in that field, each with its path (``volumes.0``)."""
        listed: list[Any] = self.get(name, a_list, [])
        return [(f"{self.path}.{name}.{number}", item) for number, item in enumerate(listed)]

    def pairs(self, name: str, key: Reader[str], value: Reader[str]) -> dict[str, str]:
        """Names and texts of the object in that field, each pair by its own path."""
        given: Mapping[Any, Any] = self.get(name, _an_object, {})
        read: dict[str, str] = {}
        for key_given, item in given.items():
            try:
                read[key(key_given)] = value(item)
            except InvalidValue as error:
                self.complain(f"{name}.{_shown_key(key_given)}", error.message)
        return read

    def complain(self, name: str, text: str) -> None:
        self.errors.setdefault(f"{self.path}.{name}" if name else self.path, []).append(text)


def _shown_key(key: object) -> str:
    text = str(key)
    return text if text and len(text) <= 100 and text.isprintable() else shown(text)


def _an_object(value: object) -> Mapping[Any, Any]:
    if not isinstance(value, Mapping):
        raise InvalidValue(f"{shown(value)} is not an object of names and texts.")
    if len(value) > MOST_ITEMS:
        raise InvalidValue(f"{len(value)} names; at most {MOST_ITEMS} are allowed.")
    return value


def a_list(value: object) -> list[Any]:
    if not isinstance(value, list):
        raise InvalidValue(f"{shown(value)} is not a list.")
    if len(value) > MOST_ITEMS:
        raise InvalidValue(f"{len(value)} items; at most {MOST_ITEMS} are allowed.")
    return value


def a_line(value: object) -> str:
    """A text on one line, not empty."""
    if not isinstance(value, str):
        raise InvalidValue(f"{shown(value)} is not a text.")
    if len(value) > MOST_TEXT:
        raise InvalidValue(f"{len(value)} characters; at most {MOST_TEXT} are allowed.")
    if complaint := unsendable(value):
        raise InvalidValue(complaint)
    if found := control_character(value):
        raise InvalidValue(f"{shown(value)} holds the control character U+{ord(found):04X}.")
    if not value.strip():
        raise InvalidValue("It is blank: leave it out instead.")
    return value


def matching(shape: re.Pattern[str], allowed: str, longest: int = 253) -> Reader[str]:
    """Texts of one shape; ``allowed`` says in words which."""

    def read(value: object) -> str:
        text = a_line(value)
        if len(text) > longest or not shape.fullmatch(text):
            raise InvalidValue(f"{shown(text)} is not allowed. Allowed: {allowed}.")
        return text

    return read


def choice(allowed: Iterable[str]) -> Reader[str]:
    choices = tuple(allowed)

    def read(value: object) -> str:
        if not isinstance(value, str) or value not in choices:
            raise InvalidValue(f"{shown(value)} is not one of {', '.join(choices)}.")
        return str(value)

    return read


def flag(value: object) -> bool:
    if not isinstance(value, bool):
        raise InvalidValue(f"{shown(value)} is not true or false.")
    return value


def whole(least: int, most: int) -> Reader[int]:
    def read(value: object) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
            raise InvalidValue(f"{shown(value)} is not a whole number from {least} to {most}.")
        return value

    return read


def path(value: object) -> str:
    """An absolute path in its normal form: what an allow-list says of it is then true of it."""
    text = a_line(value)
    if "{{" in text or "{%" in text:
        raise InvalidValue(f"{shown(text)}: templates are not filled in here.")
    if not _PATH.fullmatch(text) or {".", ".."} & set(text.split("/")):
        raise InvalidValue(
            f"{shown(text)} is not an absolute path in its normal form. Allowed: /folder/name, without '..', "
            "'//', a '/' at the end, ':' and ','."
        )
    return text


def size(least: int = 1) -> Reader[int]:
    """Bytes: a whole number, or a text with a unit, such as 512Mi."""

    def read(value: object) -> int:
        found = _SIZE.fullmatch(_number_text(value))
        if found is None:
            raise InvalidValue(
                f"{shown(value)} is not a size. Allowed: a whole number of bytes, or one with a unit of "
                f"{', '.join([*BINARY_UNITS, *DECIMAL_UNITS])}, such as 512Mi."
            )
        count = int(found[1]) * {**BINARY_UNITS, **DECIMAL_UNITS}.get(found[2], 1)
        if not least <= count <= MOST_BYTES:
            raise InvalidValue(
                f"{shown(value)} is not between {size_text(least)} and {size_text(MOST_BYTES)}."
            )
        return count

    return read


def cpus(value: object) -> float:
    """A number of CPUs, to the thousandth: 2, 0.5, "500m"."""
    text = _number_text(value)
    if not _CPUS.fullmatch(text):
        raise InvalidValue(
            f"{shown(value)} is not a number of CPUs. Allowed: from 0.01 to {MOST_CPUS}, to the thousandth, "
            'such as 2, 0.5 or "500m".'
        )
    thousandths = Fraction(text.removesuffix("m")) * (1 if text.endswith("m") else 1000)
    if not 10 <= thousandths <= MOST_CPUS * 1000:
        raise InvalidValue(f"{shown(value)} is not between 0.01 and {MOST_CPUS} CPUs.")
    return int(thousandths) / 1000


def _number_text(value: object) -> str:
    """A number as it is written; empty for what is neither a text nor a number that can be meant."""
    if isinstance(value, str):
        return value if len(value) <= 40 else ""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return ""
    return str(value) if abs(value) < 10**18 else ""


def size_text(count: int) -> str | int:
    """The size as people write it where a unit fits exactly, and otherwise the number of bytes."""
    for unit, factor in reversed(BINARY_UNITS.items()):
        if count and count % factor == 0:
            return f"{count // factor}{unit}"
    return count


def cpus_number(count: float) -> float | int:
    """Without a point where it is a whole number."""
    return int(count) if count == int(count) else count
