"""The port through which a run that has begun or ended asks for what comes next.

Executions know nothing of jobs; the app ``jobs`` registers its planner here when it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from executions.states import State, Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class NewExecution:
    """A row to be made: Waiting, or Cancelled for ``missed`` fires that did not run.

    ``check_at``: when it is due; held (executions/holding.py) where it waits for leave to start.
    ``catch_up_until``: it stands for the first of the missed fires up to that one.
    ``most_active``: of a backfill, how many of its job's may be under way at once.
    ``retry_of``: the ended run whose work it does once more.
    """

    id: UUID
    job_id: UUID
    spec_id: UUID
    owner_id: int
    shard: int
    trigger: Trigger
    scheduled_for: datetime
    check_at: datetime | None
    state: State = State.WAITING
    reason: str = ""
    message: str = ""
    missed: int = 0
    finished_at: datetime | None = None
    catch_up_until: datetime | None = None
    most_active: int | None = None
    retry_of: UUID | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class BegunRun:
    """What the planner is told of a run that has been sent, or begun, for the first time."""

    id: UUID
    job_id: UUID
    trigger: Trigger
    scheduled_for: datetime
    begun_at: datetime


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """What the planner is told of a run that has reached a terminal state.

    ``started_at``: when its first attempt started; what passed during earlier attempts fell into the run.
    ``begun``: the planner has been, or is, told of its beginning. ``held``: it waited for leave to start.
    """

    id: UUID
    job_id: UUID
    trigger: Trigger
    scheduled_for: datetime
    state: State
    started_at: datetime | None
    finished_at: datetime
    begun: bool = True
    held: bool = False
    catch_up_until: datetime | None = None


@dataclass(frozen=True, slots=True)
class Progress:
    """The runs of one batch that have begun, and those that have ended.

    ``retried``: the jobs of those that wait for another attempt. ``moved``: those that wait for a time that
    somebody gave them; what follows is what would if they had ended, unstarted, when they were moved.
    """

    begun: Sequence[BegunRun] = ()
    ended: Sequence[EndedRun] = ()
    retried: Collection[UUID] = ()
    moved: Sequence[EndedRun] = ()


Planner = Callable[[Progress, datetime], list[NewExecution]]

_planners: list[Planner] = []


def register_planner(planner: Planner) -> None:
    if planner not in _planners:
        _planners.append(planner)


def plan_next(progress: Progress, now: datetime) -> list[NewExecution]:
    """The executions that follow: called inside the transaction in which the runs begin and end."""
    if not (progress.begun or progress.ended or progress.retried or progress.moved):
        return []
    return [new for planner in _planners for new in planner(progress, now)]
