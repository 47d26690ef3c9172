"""Typed readers of environment variables.

Each refuses nonsense with the variable's name, the value and what is allowed; none of
them ever falls back to a default where a value was given.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from urllib.parse import SplitResult, parse_qs, urlsplit

from django.core.exceptions import ImproperlyConfigured
from dotenv import dotenv_values

from scheduler_project.kernel.durations import format_duration, parse_duration
from scheduler_project.kernel.errors import InvalidValue

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}

WORD = re.compile(r"[A-Za-z0-9._-]{1,64}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
HOST = re.compile(r"\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\]")
ORIGIN = re.compile(r"https?://((\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
_IMAGE_PATH = r"[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
IMAGE = re.compile(
    rf"([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/)?{_IMAGE_PATH}(:[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(@[a-z0-9]+:[0-9a-f]{{32,}})?"
)


class Refused(ImproperlyConfigured):
    """A variable holds what it must not. The message is the one line that people are to see."""


class Environment:
    """Reads variables from ``variables`` (usually ``os.environ``). An empty variable counts as not set."""

    def __init__(self, variables: Mapping[str, str]) -> None:
        self._variables = variables

    def text(self, name: str, default: str = "") -> str:
        return self._variables.get(name, "").strip() or default

    def flag(self, name: str, default: bool = False) -> bool:
        value = self.text(name).lower()
        if not value:
            return default
        if value not in TRUE | FALSE:
            raise _refusal(name, value, "true or false")
        return value in TRUE

    def integer(self, name: str, default: int, *, minimum: int, maximum: int) -> int:
        value = self.text(name)
        return integer_of(name, value, minimum=minimum, maximum=maximum) if value else default

    def choice(self, name: str, default: str, allowed: Sequence[str]) -> str:
        value = self.text(name, default)
        if value not in allowed:
            raise _refusal(name, value, "one of " + ", ".join(item for item in allowed if item))
        return value

    def duration(self, name: str, default: str, *, minimum: str = "0s", maximum: str = "3660d") -> timedelta:
        value = self.text(name, default)
        least, most = parse_duration(minimum), parse_duration(maximum)
        try:
            length = parse_duration(value)
        except InvalidValue as error:
            raise Refused(f"{name}: {error.message}.") from None
        if not least <= length <= most:
            raise _refusal(
                name, value, f"a duration from {format_duration(least)} to {format_duration(most)}"
            )
        return length

    def word(self, name: str, default: str) -> str:
        return self._matching(name, default, WORD, "1 to 64 letters, digits and . _ -")

    def image(self, name: str, default: str) -> str:
        return self._matching(name, default, IMAGE, "a container image, such as python:3.12-slim")

    def names(self, name: str, default: str = "") -> list[str]:
        return self._list(name, default, VARIABLE, "names of variables with commas between them")

    def hosts(self, name: str, default: str = "") -> list[str]:
        allowed = "host names without scheme and port, with commas between them"
        return self._list(name, default, HOST, allowed)

    def origins(self, name: str, default: str = "") -> list[str]:
        allowed = "origins such as https://jobs.example.org, with commas between them"
        return self._list(name, default, ORIGIN, allowed)

    def search_path(self, name: str, default: str = "") -> str:
        """Folders as in PATH. A relative one would mean another folder in each process."""
        value = self.text(name, default)
        if value and not all(part.startswith("/") for part in value.split(":")):
            raise _refusal(name, value, "absolute folders with colons between them")
        return value

    def folder(self, name: str, default: str = "") -> Path:
        """The absolute path of a folder that is there, or that can be made as nothing is in its place."""
        value = self.text(name, default)
        try:
            found = Path(value).expanduser().resolve()
            usable = nearest(found).is_dir()
        except (OSError, RuntimeError):  # a name that is too long; a user that there is not
            usable = False
        if not usable:
            raise _refusal(name, value, "a folder")
        return found

    def optional_folder(self, name: str) -> str:
        return str(self.folder(name)) if self.text(name) else ""

    def url(self, name: str, default: str, schemes: Sequence[str]) -> str:
        """A URL of one of ``schemes``; the message never repeats the URL, which may hold a password."""
        value = self.text(name, default)
        if value and (complaint := _url_complaint(value, schemes)):
            forms = ", ".join(f"{scheme}://…" for scheme in schemes)
            raise Refused(f"{name}: {complaint}. Allowed: {forms}.")
        return value

    def _matching(self, name: str, default: str, shape: re.Pattern[str], allowed: str) -> str:
        value = self.text(name, default)
        if not shape.fullmatch(value):
            raise _refusal(name, value, allowed)
        return value

    def _list(self, name: str, default: str, shape: re.Pattern[str], allowed: str) -> list[str]:
        """Items with commas between them; blanks around an item do not count."""
        items = [item.strip() for item in self.text(name, default).split(",") if item.strip()]
        for item in items:
            if not shape.fullmatch(item):
                raise _refusal(name, item, allowed)
        return items


def given_variables(file: Path, environment: Mapping[str, str]) -> dict[str, str]:
    """What was given, in ``file`` or, before it, in ``environment``; a blank variable counts as not given."""
    try:
        lines = {name: value or "" for name, value in dotenv_values(file).items()}
    except (OSError, UnicodeDecodeError) as error:
        raise Refused(f"{file}: it cannot be read ({error}). Make it a readable file in UTF-8.") from None
    return {name: value for name, value in {**lines, **environment}.items() if value.strip()}


def integer_of(name: str, value: str, *, minimum: int, maximum: int) -> int:
    readable = value.isascii() and value.isdigit() and len(value) <= 20
    if not readable or not minimum <= int(value) <= maximum:
        raise _refusal(name, value, f"a whole number from {minimum} to {maximum}")
    return int(value)


def nearest(path: Path) -> Path:
    """``path``, or the closest to it of the folders above it that is there. OSError: who knows."""
    for place in (path, *path.parents):
        try:
            os.lstat(place)
        except (FileNotFoundError, NotADirectoryError):
            continue
        return place
    return path


def require_longest(name: str, length: timedelta, others: Mapping[str, timedelta], otherwise: str) -> None:
    """Refuse durations that are each allowed, but not together; ``otherwise`` says what would happen."""
    for other, shorter in others.items():
        if length <= shorter:
            lengths = f"{format_duration(length)} is not longer than {other}, {format_duration(shorter)}"
            raise Refused(f"{name}: {lengths}: {otherwise}. Make it longer, or the other one shorter.")


def _url_complaint(url: str, schemes: Sequence[str]) -> str:
    """What is wrong with ``url``, in words that hold nothing of it; empty where it will do."""
    try:
        parts = urlsplit(url)
    except ValueError:  # a bracket that nothing closes
        return "not a URL"
    if parts.scheme not in schemes:
        return "not a URL of an allowed kind"
    if not url.isprintable() or " " in url:
        return "a blank or a control character is in the URL"
    if parts.scheme.startswith("postgres"):
        return ""  # several hosts, or none, are fine; libpq reads the rest
    return _place_complaint(parts) or _redis_complaint(parts)


def _place_complaint(parts: SplitResult) -> str:
    """A network address needs a host and a real port, a socket its path."""
    if parts.scheme in {"unix", "redis+socket"}:
        return "" if parts.path.strip("/") else "the URL names no socket"
    try:
        port = parts.port
    except ValueError:
        port = 0
    if port == 0:
        return "the URL's port is not a whole number from 1 to 65535"
    return "" if parts.hostname else "the URL names no host"


def _redis_complaint(parts: SplitResult) -> str:
    """The number of a Redis database, in whichever of its places."""
    if "redis" not in parts.scheme and parts.scheme != "unix":
        return ""
    query = parse_qs(parts.query)
    numbers = [*query.get("db", []), *query.get("virtual_host", [])]
    if not parts.scheme.endswith(("unix", "socket")):
        numbers.append(parts.path.strip("/"))
    wrong = any(number and not (number.isascii() and number.isdigit()) for number in numbers)
    return "the URL's Redis database is not a number" if wrong else ""


def _refusal(name: str, value: str, allowed: str) -> Refused:
    return Refused(f"{name}: {_short(value)} is not allowed. Allowed: {allowed}.")


def _short(value: str) -> str:
    """The value on one line; the beginning where it is long."""
    return repr(value) if len(value) <= 200 else f"{value[:200]!r}…"
