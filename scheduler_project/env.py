"""Typed readers of environment variables.

Each refuses nonsense with the variable's name, the value and what is allowed; none of
them ever falls back to a default where a value was given.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping, Sequence
from datetime import timedelta
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import SplitResult, parse_qs, urlsplit

from django.core.exceptions import ImproperlyConfigured
from dotenv import dotenv_values

from executions.addresses import SEVERAL, hosts_of, read_redis
from executions.priorities import QUEUE_RULE, read_queue
from scheduler_project.kernel.durations import format_duration, parse_duration
from scheduler_project.kernel.errors import InvalidValue

TRUE = {"1", "true", "yes", "on"}
FALSE = {"0", "false", "no", "off"}

WORD = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]{0,61}[A-Za-z0-9])?")  # a label of Kubernetes, too
LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"  # of DNS, which names of Kubernetes follow
CONTEXT = re.compile(r"[!-~]{0,253}")
TEAM_NAMESPACE = re.compile(rf"[^=,]*[^=,\s] *= *{LABEL}")
SECRETS = "PUNCTUAL_SECRET_"  # what begins so is for the runs that name it only
PASSED_VARIABLE = re.compile(rf"(?!{SECRETS})[A-Za-z_][A-Za-z0-9_]*")
DECIMAL = re.compile(r"[0-9]{1,9}(\.[0-9]{1,9})?", re.ASCII)
HOST = re.compile(r"\*|\.?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\]")
ORIGIN = re.compile(r"https?://((\*\.)?[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*|\[[0-9A-Fa-f:.]+\])(:[0-9]{1,5})?")
PATTERN = re.compile(r"([A-Za-z0-9._:/@*?-]|\{team\})+")
VOLUME_PATTERN = re.compile(
    r"(/|(volume|claim|configMap|secret):(?=.))([A-Za-z0-9._/*?-]|\{team\})*", re.ASCII
)
_IMAGE_PATH = r"[a-z0-9]+([._-]+[a-z0-9]+)*(/[a-z0-9]+([._-]+[a-z0-9]+)*)*"
IMAGE = re.compile(
    rf"([A-Za-z0-9][A-Za-z0-9.-]*(:[0-9]+)?/)?{_IMAGE_PATH}(:[A-Za-z0-9_][A-Za-z0-9_.-]{{0,127}})?(@[a-z0-9]+:[0-9a-f]{{32,}})?"
)


BUCKET = re.compile(r"s3://([a-z0-9][a-z0-9.-]{1,61}[a-z0-9])((?:/[A-Za-z0-9._-]+)*/?)")


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

    def optional_integer(self, name: str, *, minimum: int, maximum: int) -> int | None:
        value = self.text(name)
        return integer_of(name, value, minimum=minimum, maximum=maximum) if value else None

    def optional_number(self, name: str, *, minimum: float, maximum: float) -> float | None:
        """A decimal number such as 1.5."""
        value = self.text(name)
        if not value:
            return None
        if not DECIMAL.fullmatch(value) or not minimum <= float(value) <= maximum:
            raise _refusal(name, value, f"a number from {minimum:g} to {maximum:g}")
        return float(value)

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
        allowed = "1 to 63 letters, digits and . _ -, the first and the last a letter or a digit"
        return self._matching(name, default, WORD, allowed)

    def image(self, name: str, default: str) -> str:
        return self._matching(name, default, IMAGE, "a container image, such as python:3.12-slim")

    def names(self, name: str, default: str = "") -> list[str]:
        allowed = f"names of variables with commas between them, none that begins with {SECRETS}"
        return self._list(name, default, PASSED_VARIABLE, allowed)

    def patterns(self, name: str, default: str = "") -> list[str]:
        allowed = "names with * and ? for what may differ, or {team}, with commas between them"
        return self._list(name, default, PATTERN, allowed)

    def volume_patterns(self, name: str, default: str = "") -> list[str]:
        """Paths of the host, in their normal form, and names after their kind."""
        allowed = (
            "patterns of paths, such as /data/{team}/*, and of names after their kind (volume:, claim:, "
            "configMap:, secret:), with commas between them"
        )
        found = self._list(name, default, VOLUME_PATTERN, allowed)
        for pattern in found:
            if pattern.startswith("/") and ({".", ".."} & set(pattern.split("/")) or "//" in pattern):
                raise _refusal(name, pattern, allowed)
        return found

    def namespace(self, name: str, default: str) -> str:
        allowed = "a Kubernetes namespace: 1 to 63 small letters, digits and '-'"
        return self._matching(name, default, re.compile(LABEL), allowed)

    def context(self, name: str) -> str:
        return self._matching(name, "", CONTEXT, "the name of a context of the kubeconfig, without blanks")

    def team_namespaces(self, name: str) -> dict[str, str]:
        """Team and Kubernetes namespace: ``sales=sales-runs, data=data-runs``."""
        allowed = "pairs such as sales=sales-runs, with commas between them"
        pairs = [item.split("=") for item in self._list(name, "", TEAM_NAMESPACE, allowed)]
        found = {team.strip(): namespace.strip() for team, namespace in pairs}
        if len(found) < len(pairs):
            raise _refusal(name, self.text(name), "each team once")
        return found

    def run_queues(self, name: str, default: str) -> list[str]:
        """Queues of runs, each once."""
        found = [item.strip() for item in self.text(name, default).split(",") if item.strip()]
        for item in found:
            try:
                read_queue(item)
            except InvalidValue:
                raise _refusal(
                    name, item, f"queues of runs with commas between them, each {QUEUE_RULE}"
                ) from None
        return list(dict.fromkeys(found))

    def hosts(self, name: str, default: str = "") -> list[str]:
        allowed = "host names without scheme and port, with commas between them"
        return self._list(name, default, HOST, allowed)

    def origins(self, name: str, default: str = "") -> list[str]:
        allowed = "origins such as https://jobs.example.org, with commas between them"
        return self._list(name, default, ORIGIN, allowed)

    def exact_origins(self, name: str) -> list[str]:
        """The same, each of them one: none with ``*``."""
        allowed = "origins such as https://jobs.example.org, without *, with commas between them"
        found = self.origins(name)
        for origin in found:
            if "*" in origin:
                raise _refusal(name, origin, allowed)
        return found

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

    def log_storage(self, name: str, default: str) -> dict[str, Any]:
        """Django's form of where logs are archived: a folder, or ``s3://bucket/prefix``."""
        value = self.text(name, default)
        if "://" not in value:
            options = {"location": str(self.folder(name, default))}
            return {"BACKEND": "executions.log_archive.LogFolder", "OPTIONS": options}
        found = BUCKET.fullmatch(value)
        if found is None:
            raise _refusal(name, value, "a folder, or s3://bucket, or s3://bucket/prefix")
        if missing := [part for part in ("boto3", "storages") if find_spec(part) is None]:
            told = f"{name}: {', '.join(missing)} cannot be imported"
            raise Refused(f"{told}. Make it so by: pip install -r requirements-s3.txt.")
        options = {"bucket_name": found[1], "location": (found[2] or "").strip("/")}
        return {"BACKEND": "executions.log_bucket.LogBucket", "OPTIONS": options}

    def optional_folder(self, name: str) -> str:
        return str(self.folder(name)) if self.text(name) else ""

    def optional_file(self, name: str) -> Path | None:
        """The absolute path of a file in a folder that is there; None where nothing is set."""
        if not (value := self.text(name)):
            return None
        found = Path(value).expanduser().absolute()
        if not found.parent.is_dir() or found.is_dir():
            raise _refusal(name, value, "a file in a folder that exists")
        return found

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
    if parts.scheme in SEVERAL:
        return _complaint_of_several(url)
    return _place_complaint(parts) or _redis_complaint(parts)


def _complaint_of_several(url: str) -> str:
    """What is wrong with a URL that may name several hosts."""
    try:
        hosts_of(url)
        if "amqp" in url.partition("://")[0]:
            return ""
        return _redis_complaint(urlsplit(read_redis(url).url))
    except ValueError as error:
        return str(error)


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
    if "," in (parts.hostname or ""):
        return "the URL names several hosts, which this kind of URL cannot"
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
