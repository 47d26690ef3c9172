"""What a check has to say."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum


class Level(StrEnum):
    OK = "ok"
    WARNING = "warning"
    """It works, and will not for ever or not in every case."""
    FAILURE = "failure"
    UNKNOWN = "unknown"
    """It could not be looked at; what is in the way has a finding of its own."""


@dataclass(frozen=True, slots=True)
class Finding:
    """``check``: a stable name within the part. ``todo``: what to do about it; empty where nothing is to be
    done. ``away``: the part does not answer."""

    check: str
    level: Level
    said: str
    todo: str = ""
    away: bool = False


Check = Callable[[], Iterator[Finding]]


def ok(check: str, said: str) -> Finding:
    return Finding(check, Level.OK, said)


def warning(check: str, said: str, todo: str) -> Finding:
    return Finding(check, Level.WARNING, said, todo)


def failure(check: str, said: str, todo: str) -> Finding:
    return Finding(check, Level.FAILURE, said, todo)


def away(said: str, todo: str) -> Finding:
    return Finding("reachable", Level.FAILURE, said, todo, away=True)


def unknown(check: str, said: str) -> Finding:
    return Finding(check, Level.UNKNOWN, said)
