"""One root for all errors; whether trying again can help is a type, not a flag."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from itertools import islice

from scheduler_project.kernel.texts import shortened

MOST_NAMED = 5


class PunctualError(Exception):
    """Something went wrong in Punctual."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or (self.__doc__ or "").strip().splitlines()[0])

    @property
    def message(self) -> str:
        return str(self.args[0])


class RetryableError(PunctualError):
    """It did not work this time; the same call may work later."""


class PermanentError(PunctualError):
    """It will not work however often it is tried."""


class InvalidValue(PermanentError):
    """A value that cannot be accepted.

    The message names the value and what is allowed; ``field`` is the name that the
    caller used for it (as in the REST body), or empty where there is none.
    """

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.field = field


class InvalidFields(PermanentError):
    """Several values cannot be accepted."""

    def __init__(self, errors: Mapping[str, list[str]]) -> None:
        super().__init__("; ".join(f"{name}: {' '.join(texts)}" for name, texts in errors.items()))
        self.errors = dict(errors)


class NotFound(PermanentError):
    """There is no such thing."""


class Conflict(PermanentError):
    """The request does not fit what is there now."""


class Outdated(PermanentError):
    """It has changed since the caller read it."""


def complaints(names: Iterable[object], complaint: Callable[[object], str]) -> dict[str, list[str]]:
    """Errors for the first few of ``names``, the last of which says how many more there are.

    Whoever sends a hundred thousand names that nobody knows is not sent them back.
    """
    waiting = iter(names)
    errors = {shortened(str(name), 100): [complaint(name)] for name in islice(waiting, MOST_NAMED)}
    if others := sum(1 for _ in waiting):
        next(reversed(errors.values())).append(f"So it is with {others} more.")
    return errors
