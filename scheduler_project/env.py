"""Typed readers of environment variables.

Each refuses nonsense with the variable's name, the value and what is allowed; none of
them ever falls back to a default where a value was given.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import timedelta
from urllib.parse import urlsplit

from django.core.exceptions import ImproperlyConfigured

from scheduler_project.kernel.durations import format_duration, parse_duration
from scheduler_project.kernel.errors import InvalidValue

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}


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
        if not value:
            return default
        readable = value.isascii() and value.isdigit() and len(value) <= 20
        if not readable or not minimum <= int(value) <= maximum:
            raise _refusal(name, value, f"a whole number from {minimum} to {maximum}")
        return int(value)

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
            raise ImproperlyConfigured(f"{name}: {error.message}.") from None
        if not least <= length <= most:
            raise _refusal(
                name, value, f"a duration from {format_duration(least)} to {format_duration(most)}"
            )
        return length

    def words(self, name: str, default: str = "") -> list[str]:
        """A comma-separated list; blanks around the items do not count."""
        return [item.strip() for item in self.text(name, default).split(",") if item.strip()]

    def url(self, name: str, default: str, schemes: Sequence[str]) -> str:
        """A URL of one of ``schemes``; the message never repeats the URL, which may hold a password."""
        value = self.text(name, default)
        if value and _scheme(value) not in schemes:
            forms = ", ".join(f"{scheme}://…" for scheme in schemes)
            raise ImproperlyConfigured(f"{name}: not a URL of an allowed kind. Allowed: {forms}.")
        return value


def _scheme(url: str) -> str:
    try:
        return urlsplit(url).scheme
    except ValueError:  # a bracket that nothing closes
        return ""


def _refusal(name: str, value: str, allowed: str) -> ImproperlyConfigured:
    return ImproperlyConfigured(f"{name}: {value!r} is not allowed. Allowed: {allowed}.")
