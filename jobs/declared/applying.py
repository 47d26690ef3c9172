"""Does what a comparison found: all of it in one transaction, or nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime

from django.db import connection, transaction

from access.policy import Forbidden, User
from jobs import services
from jobs.declared.comparing import Action, Step
from jobs.declared.wanted import Place, Problem, Refused
from jobs.queries import JOBS
from scheduler_project.kernel.errors import Conflict, InvalidFields

_LOCK = 0x706E6374_6A6F6273  # any number that nobody else uses


@contextmanager
def taking_turns() -> Iterator[None]:
    """One transaction, in which nobody else compares files with the jobs or applies them."""
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(JOBS["take_turns"], [_LOCK])
        yield


def carry_out(steps: Sequence[Step], user: User, now: datetime, *, keep: bool = True) -> None:
    """Refused: all that could not be done, and then nothing is. ``keep`` false: it is tried, and undone."""
    with transaction.atomic():
        problems = [problem for step in steps for problem in _try(step, user, now)]
        if problems:
            raise Refused(problems)
        if not keep:
            transaction.set_rollback(True)


def _try(step: Step, user: User, now: datetime) -> Iterator[Problem]:
    place = step.wanted.place if step.wanted else Place(step.label, 1)
    try:
        with transaction.atomic():
            _DOING[step.action](step, user, now)
    except InvalidFields as error:
        for field, texts in error.errors.items():
            yield from (Problem(place, field, text) for text in texts)
    except (Conflict, Forbidden) as error:
        yield Problem(place, "name" if isinstance(error, Conflict) else "owner", error.message)


def _create(step: Step, user: User, now: datetime) -> None:
    assert step.wanted is not None  # noqa: S101 -- for mypy
    services.create_job(step.wanted.definition, user, now)


def _update(step: Step, user: User, now: datetime) -> None:
    assert step.wanted is not None and step.job is not None  # noqa: S101 -- for mypy
    services.update_job(step.job, step.wanted.definition, user, now)


def _archive(step: Step, user: User, now: datetime) -> None:
    assert step.job is not None  # noqa: S101 -- for mypy
    services.archive_job(step.job, user, now)


def _keep(step: Step, user: User, now: datetime) -> None:
    del step, user, now


_DOING: dict[Action, Callable[[Step, User, datetime], None]] = {
    Action.CREATE: _create,
    Action.UPDATE: _update,
    Action.KEEP: _keep,
    Action.ARCHIVE: _archive,
}
