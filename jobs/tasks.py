"""Reusable tasks: what several jobs run, each on its own schedule and with parameters of its own.

A job that names a task takes over what it does not say itself; what both say is the job's, and parameters
and variables are put together. An edit of a task is one of all its jobs: their waiting runs get it at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from datetime import datetime
from typing import Any
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import ProtectedError

from access.policy import User, require_permission
from containers.allowed import check
from containers.options import merged, read_options
from executions.allowance import allowed_here
from executions.worker.rendering import counted_steps
from jobs.changes import settle_soon
from jobs.definitions import JobDefinition, read_field
from jobs.models import Job, Task
from jobs.work import check_work
from scheduler_project.kernel.errors import Conflict, InvalidFields, InvalidValue, NotFound, complaints
from scheduler_project.kernel.texts import shown

FIELDS = ("name", "description", "type", "command", "image", "env", "parameters", "container")
REQUIRED = ("name", "type")
SETTLED_AT_ONCE = 50
"""Jobs whose runs are brought in line at once; those of more the beats take on, within seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskDefinition:
    """``container``: the normal form of containers/options.py."""

    name: str
    type: str
    description: str = ""
    command: str = ""
    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    container: Mapping[str, Any] = field(default_factory=dict)


@counted_steps()
def read_task(given: Mapping[str, Any]) -> TaskDefinition:
    """The definition in a REST body. InvalidFields for whatever is missing, unknown or not allowed."""
    errors = complaints(
        sorted(set(given) - set(FIELDS), key=str),
        lambda name: f"{shown(name)} is not a field of a task. Allowed: {', '.join(FIELDS)}.",
    )
    values: dict[str, Any] = {}
    for name in FIELDS:
        if name not in given:
            if name in REQUIRED:
                errors[name] = ["This field is required."]
            continue
        try:
            values[name] = read_field(name, given[name])
        except InvalidValue as error:
            errors[name] = [error.message]
        except InvalidFields as error:
            errors |= error.errors
    if not errors:
        errors = check_work({"command": "", **values})
    if errors:
        raise InvalidFields(errors)
    return TaskDefinition(**values)


def task_body(task: Task) -> dict[str, Any]:
    """What ``read_task`` reads the task back from."""
    return {name: getattr(task, name) for name in FIELDS}


def list_tasks(*, name: str = "", after: UUID | None = None, limit: int) -> list[Task]:
    """At most ``limit`` tasks with ids above ``after``, in that order. ``name``: exactly."""
    found = Task.objects.order_by("id")
    if name:
        found = found.filter(name=name)
    if after is not None:
        found = found.filter(id__gt=after)
    return list(found[:limit])


def find_task(task_id: UUID, *, lock: bool = False) -> Task:
    """``lock``: nobody else changes it until the transaction ends."""
    tasks = Task.objects.filter(id=task_id)
    task = (tasks.select_for_update() if lock else tasks).first()
    if task is None:
        raise NotFound(f"There is no task {task_id}.")
    return task


def task_of_job(definition: JobDefinition) -> Task | None:
    """The task that a job names. InvalidFields: there is none, or the two do not go together."""
    if not definition.task:
        return None
    task = Task.objects.filter(name=definition.task).first()
    if task is None:
        known = ", ".join(Task.objects.order_by("name").values_list("name", flat=True)[:20])
        raise InvalidFields(
            {"task": [f"There is no task {definition.task!r}. There are: {known or 'none yet'}."]}
        )
    if definition.type not in ("", task.type):
        raise InvalidFields(
            {"type": [f"The task {task.name!r} is of type {task.type}: leave this out, or say the same."]}
        )
    errors = check_work(
        {
            "type": task.type,
            "command": definition.command or task.command,
            "image": definition.image or task.image,
            "env": {**task.env, **definition.env},
            "container": merged(task.container, definition.container),
        }
    )
    if errors:
        raise InvalidFields(errors)
    return task


def create_task(definition: TaskDefinition, user: User) -> Task:
    """Forbidden without the permission; Conflict: there is one of that name."""
    require_permission(user, "jobs.add_task")
    _check_allowed(definition)
    return _saved(Task(**asdict(definition)))


def update_task(task: Task, definition: TaskDefinition, user: User, now: datetime) -> Task:
    """Change it; the waiting runs of its jobs follow at once. InvalidFields: some job does not fit it."""
    require_permission(user, "jobs.change_task")
    _check_allowed(definition)
    for name, value in asdict(definition).items():
        setattr(task, name, value)
    return save_task(task, now)


def save_task(task: Task, now: datetime) -> Task:
    """As it is in memory; the waiting runs of its jobs follow. Conflict: there is one of that name."""
    with transaction.atomic():
        _saved(task)
        jobs = Job.objects.filter(task=task, archived_at=None)
        jobs.exclude(type=task.type).update(type=task.type)
        for job_id in jobs.order_by("id").values_list("id", flat=True)[:SETTLED_AT_ONCE]:
            settle_soon(job_id, now)
    return task


def delete_task(task: Task, user: User) -> None:
    """Conflict while jobs use it."""
    require_permission(user, "jobs.delete_task")
    try:
        with transaction.atomic():
            gone = Job.objects.filter(task=task, archived_at__isnull=False)
            gone.filter(command="").update(command=task.command)
            gone.update(task=None)
            task.delete()
    except ProtectedError as error:
        count = Job.objects.filter(task=task, archived_at=None).count()
        raise Conflict(f"{count} jobs use the task {task.name!r}: change them first.") from error


def _saved(task: Task) -> Task:
    try:
        with transaction.atomic():
            task.save()
    except IntegrityError as error:
        raise Conflict(f"There is a task {task.name!r} already.") from error
    return task


def _check_allowed(definition: TaskDefinition) -> None:
    """By the policy, for a job of whatever team: which one it is is known when a job is made of it."""
    check(definition.image, read_options(definition.container), allowed_here(), None)
