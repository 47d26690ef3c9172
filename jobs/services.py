"""What can be done with jobs. REST, the admin and the commands are thin edges over these functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.db.models import Q

from executions.ids import shard_of
from executions.policy import User, require_member, sees_all
from executions.scheduling import push_due_soon
from executions.transitions import insert
from jobs.changes import settle_soon
from jobs.definitions import JobDefinition
from jobs.models import Job, Missed
from jobs.occurrences import occurrence
from jobs.schedules.kinds import format_instant
from jobs.snapshots import spec_of, store_spec
from scheduler_project.kernel.errors import Conflict, InvalidFields

LATEST_START = timedelta(hours=1)
TOO_LATE = '{first} is more than an hour in the past: give an instant to come, or "now" to run it at once.'


@dataclass(frozen=True, slots=True)
class CreatedJob:
    job: Job
    first_execution_id: UUID
    next_run_at: datetime


def create_job(definition: JobDefinition, user: User, now: datetime) -> CreatedJob:
    """Save a job and its first execution (Waiting), in one transaction; what is due soon enters the window.

    InvalidFields: an owner that does not exist, a schedule that never fires again or whose only
    fire is more than LATEST_START ago (a little late is a caller's clock or a slow network). Forbidden:
    not the caller's team. Conflict: that owner has a job of that name.
    """
    with transaction.atomic():
        job = _new_job(definition, _owner(definition.owner, user), user, now)
        due = _first_due(definition, now)
        job.spec = store_spec(spec_of(job))
        _save_new(job)
        first = occurrence(job, due)
        entries = insert([first])
    push_due_soon(entries, now)
    return CreatedJob(job, first.id, first.scheduled_for)


def update_job(job: Job, definition: JobDefinition, user: User, now: datetime) -> Job:
    """Change a job to what ``definition`` says; its runs follow at once (jobs/changes.py). The job as it is.

    Errors as of ``create_job``; what is the same stays as it is, the anchor of its schedule too.
    """
    require_member(user, job.owner)
    schedule = _schedule_after(job, definition, now)
    if schedule != job.schedule:
        _first_due(definition, now)
    with transaction.atomic():
        owner = _owner(definition.owner, user)
        _save_changes(job, owner, {**_columns(definition), "owner": owner, "schedule": schedule})
        settle_soon(job.id, now)
    return _as_it_is(job)


def pause_job(job: Job, user: User, now: datetime) -> Job:
    """Nothing of it starts any more until it is resumed; what runs goes on. Twice is once."""
    return _mark(job, user, now, Q(paused_at=None), paused_at=now)


def resume_job(job: Job, user: User, now: datetime, missed: Missed = Missed.SKIP) -> Job:
    """It goes on; ``missed``: what becomes of the times that passed meanwhile. Twice is once."""
    return _mark(job, user, now, Q(paused_at__isnull=False), paused_at=None, on_resume=missed)


def archive_job(job: Job, user: User, now: datetime) -> None:
    """Delete it: what waits is cancelled, what runs goes on, its history stays, its name is free."""
    _mark(job, user, now, Q(archived_at=None), archived_at=now)


def _mark(job: Job, user: User, now: datetime, condition: Q, **fields: Any) -> Job:
    require_member(user, job.owner)
    with transaction.atomic():
        if Job.objects.filter(condition, id=job.id).update(**fields):
            settle_soon(job.id, now)
    return _as_it_is(job)


def _as_it_is(job: Job) -> Job:
    return Job.objects.select_related("owner", "task").get(id=job.id)


def _schedule_after(job: Job, definition: JobDefinition, now: datetime) -> Any:
    """The stored form of the schedule; the stored one where it says the same from its own anchor."""
    given, stored = definition.schedule, job.schedule
    anchors = [job.created_at]
    if isinstance(stored, dict) and "anchor" in stored:
        anchors.append(datetime.fromisoformat(stored["anchor"]))
    if any(given.anchored(anchor).to_json() == stored for anchor in anchors):
        return stored
    return given.anchored(now).to_json()


def _new_job(definition: JobDefinition, owner: Group, user: User, now: datetime) -> Job:
    identity = uuid4()
    return Job(
        id=identity,
        owner=owner,
        schedule=definition.schedule.anchored(now).to_json(),
        **_columns(definition),
        settled_revision=1,
        shard=shard_of(identity, settings.PUNCTUAL_SHARDS),
        created_at=now,
        created_by=user.get_username(),
    )


def _columns(definition: JobDefinition) -> dict[str, Any]:
    """The columns that a definition says by itself."""
    return {
        "name": definition.name,
        "description": definition.description,
        "type": definition.type,
        "command": definition.command,
        "image": definition.image,
        "env": dict(definition.env),
        "parameters": dict(definition.parameters),
        "retries": definition.retries,
        "retry_delay": definition.retry_delay,
        "timeout": definition.timeout,
        "overlap": definition.overlap,
        "misfire": definition.misfire.policy,
        "misfire_max_age": definition.misfire.max_age,
        "misfire_max_count": definition.misfire.max_count,
        "jitter": definition.jitter,
        "managed_by": definition.managed_by,
    }


def _first_due(definition: JobDefinition, now: datetime) -> datetime:
    first = definition.schedule.anchored(now).first_fire(now)
    if first is None:
        raise InvalidFields({"schedule": ["This schedule does not fire after now."]})
    if first < now - LATEST_START:
        raise InvalidFields({"schedule": [TOO_LATE.format(first=format_instant(first))]})
    return first


def _owner(name: str, user: User) -> Group:
    """The team of that name. One that is made for ``user`` has him as its first member."""
    group = Group.objects.filter(name=name).first()
    if group is None and user.has_perm("auth.add_group"):
        group, made = Group.objects.get_or_create(name=name)
        if made and user.is_authenticated and not sees_all(user):
            user.groups.add(group)
    if group is None:
        raise InvalidFields(
            {"owner": [f"There is no team {name!r}. Ask an administrator to add a group of that name."]}
        )
    require_member(user, group)
    return group


def _save_new(job: Job) -> None:
    with _name_is_free(job.owner, job.name):
        job.save(force_insert=True)


def _save_changes(job: Job, owner: Group, columns: dict[str, Any]) -> None:
    """Only what differs from the row as it was read: somebody else may have changed the rest."""
    changed = {name: value for name, value in columns.items() if getattr(job, name) != value}
    if changed:
        with _name_is_free(owner, columns["name"]):
            Job.objects.filter(id=job.id).update(**changed)


@contextmanager
def _name_is_free(owner: Group, name: str) -> Iterator[None]:
    """A violated constraint in words."""
    try:
        with transaction.atomic():
            yield
    except IntegrityError as error:
        if "job_name_unique_per_owner" in str(error):
            raise Conflict(f"{owner.name} already has a job named {name!r}.") from error
        raise
