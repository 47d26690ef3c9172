"""The port through which an ended run asks for what comes next.

Executions know nothing of jobs; the app ``jobs`` registers its planner here when it starts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from executions.states import State, Trigger


@dataclass(frozen=True, slots=True, kw_only=True)
class NewExecution:
    """A row to be made: Waiting, or Cancelled for ``missed`` fires that did not run."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class EndedRun:
    """What the planner is told of a run that has reached a terminal state."""

    id: UUID
    job_id: UUID
    trigger: Trigger
    scheduled_for: datetime
    state: State
    started_at: datetime | None
    finished_at: datetime


Planner = Callable[[Sequence[EndedRun], datetime], list[NewExecution]]

_planners: list[Planner] = []


def register_planner(planner: Planner) -> None:
    if planner not in _planners:
        _planners.append(planner)


def plan_next(ended: Sequence[EndedRun], now: datetime) -> list[NewExecution]:
    """The executions that follow from ``ended``: called inside the transaction that ended them."""
    return [new for planner in _planners for new in planner(ended, now)] if ended else []
