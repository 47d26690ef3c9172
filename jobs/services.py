"""What can be done with jobs. REST, the admin and the commands are thin edges over these functions."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from copy import copy
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.db.models import Q

from access.audit import About, note
from access.groups import make_team
from access.levels import Level
from access.policy import (
    Forbidden,
    User,
    has_permission,
    no_team,
    require,
    require_level,
    sees_all,
    team_called,
)
from access.roles import ROLES
from containers.allowed import check
from containers.options import merged, read_options
from executions.allowance import allowed_here
from executions.ids import shard_of
from executions.scheduling import push_due_soon
from executions.transitions import insert
from jobs.changes import settle_soon
from jobs.definitions import JobDefinition, definition_body
from jobs.misfires import Policy, settle_alone
from jobs.models import Job, Missed, Task
from jobs.occurrences import occurrence
from jobs.pools import pool_of_job, publish_job_limit
from jobs.schedules.kinds import format_instant
from jobs.snapshots import spec_of, store_spec
from jobs.tasks import task_of_job
from scheduler_project.kernel.errors import Conflict, InvalidFields

LATEST_START = timedelta(hours=1)
TOO_LATE = '{first} is more than an hour in the past: give an instant to come, or "now" to run it at once.'
MISSED = '{first} has passed, and misfire lets no run start that late: give "now", or an instant to come.'


@dataclass(frozen=True, slots=True)
class CreatedJob:
    job: Job
    first_execution_id: UUID
    next_run_at: datetime


def create_job(definition: JobDefinition, user: User, now: datetime) -> CreatedJob:
    """Save a job and its first execution (Waiting), in one transaction; what is due soon enters the window.

    InvalidFields: an owner that does not exist, an image or a container that this deployment does not
    allow, a schedule that never fires again or whose only
    fire is more than LATEST_START ago (a little late is a caller's clock or a slow network). Forbidden:
    not the caller's team. Conflict: that owner has a job of that name.
    """
    with transaction.atomic():
        job = _new_job(definition, _owner(definition.owner, user), user, now)
        _check_allowed(definition, job.task)
        due = _first_due(definition, now)
        job.spec = store_spec(spec_of(job))
        _save_new(job)
        if job.max_active is not None:
            publish_job_limit(job)
        first = occurrence(job, due)
        entries = insert([first])
        _note(job, user, "created", None, definition_body(job))
    push_due_soon(entries, now)
    return CreatedJob(job, first.id, first.scheduled_for)


def update_job(job: Job, definition: JobDefinition, user: User, now: datetime) -> Job:
    """Change a job to what ``definition`` says; its runs follow at once (jobs/changes.py). The job as it is.

    Errors as of ``create_job``; what is the same stays as it is, the anchor of its schedule too.
    """
    require(user, Level.EDIT, job.owner)
    before = definition_body(job)
    schedule = _schedule_after(job, definition, now)
    if schedule != job.schedule:
        _first_due(definition, now)
    with transaction.atomic():
        owner = _owner(definition.owner, user)
        columns = _columns(definition, user)
        _check_allowed(definition, columns["task"])
        changed = _save_changes(job, owner, {**columns, "owner": owner, "schedule": schedule})
        settle_soon(job.id, now)
        _note(changed, user, "changed", before, definition_body(changed))
    return _as_it_is(job)  # settled after the commit


def pause_job(job: Job, user: User, now: datetime) -> Job:
    """Nothing of it starts any more until it is resumed; what runs goes on. Twice is once."""
    require(user, Level.OPERATE, job.owner)
    return _mark(job, user, now, "paused", Q(paused_at=None), paused_at=now)


def resume_job(job: Job, user: User, now: datetime, missed: Missed = Missed.SKIP) -> Job:
    """It goes on; ``missed``: what becomes of the times that passed meanwhile. Twice is once."""
    require(user, Level.OPERATE, job.owner)
    return _mark(job, user, now, "resumed", Q(paused_at__isnull=False), paused_at=None, on_resume=missed)


def archive_job(job: Job, user: User, now: datetime) -> None:
    """Delete it: what waits is cancelled, what runs goes on, its history stays, its name is free."""
    require(user, Level.EDIT, job.owner)
    _mark(job, user, now, "deleted", Q(archived_at=None), archived_at=now)


def _mark(job: Job, user: User, now: datetime, action: str, condition: Q, **fields: Any) -> Job:
    with transaction.atomic():
        if Job.objects.filter(condition, id=job.id).update(**fields):
            settle_soon(job.id, now)
            _note(job, user, action, None, {"missed": fields["on_resume"]} if "on_resume" in fields else {})
    return _as_it_is(job)


def _note(
    job: Job, user: User, action: str, before: dict[str, Any] | None, after: dict[str, Any] | None
) -> None:
    note(job, user, action, before, after, About(team_id=job.owner_id, job_id=job.id))


def _as_it_is(job: Job) -> Job:
    return Job.objects.select_related("owner", "task", "pool").get(id=job.id)


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
        **_columns(definition, user),
        settled_revision=1,
        shard=shard_of(identity, settings.PUNCTUAL_SHARDS),
        created_at=now,
        created_by=user.get_username(),
    )


def _columns(definition: JobDefinition, user: User) -> dict[str, Any]:
    """The columns that a definition says by itself.

    InvalidFields: no such task, no such pool that ``user`` sees, or they do not fit.
    """
    task = task_of_job(definition)
    return {
        "name": definition.name,
        "description": definition.description,
        "task": task,
        "type": definition.type if task is None else task.type,
        "command": definition.command,
        "image": definition.image,
        "env": dict(definition.env),
        "parameters": dict(definition.parameters),
        "container": dict(definition.container),
        "retries": definition.retries,
        "retry_delay": definition.retry_delay,
        "retry_policy": dict(definition.retry_policy),
        "timeout": definition.timeout,
        "overlap": definition.overlap,
        "misfire": definition.misfire.policy,
        "misfire_max_age": definition.misfire.max_age,
        "misfire_max_count": definition.misfire.max_count,
        "jitter": definition.jitter,
        "queue": definition.queue,
        "priority": definition.priority,
        "pool": pool_of_job(definition.pool, user),
        "max_active": definition.max_active,
        "managed_by": definition.managed_by,
    }


def _check_allowed(definition: JobDefinition, task: Task | None) -> None:
    """InvalidFields where the policy of this deployment does not let the team have what the job asks for."""
    options = read_options(merged(task.container if task else {}, definition.container))
    image = definition.image or (task.image if task else "")
    check(image, options, allowed_here(), definition.owner)


def _first_due(definition: JobDefinition, now: datetime) -> datetime:
    first = definition.schedule.anchored(now).first_fire(now)
    if first is None:
        raise InvalidFields({"schedule": ["This schedule does not fire after now."]})
    if first < now - LATEST_START:
        raise InvalidFields({"schedule": [TOO_LATE.format(first=format_instant(first))]})
    misfire = definition.misfire
    policy = Policy(misfire.policy, misfire.max_age, misfire.max_count)
    late = now - first > settings.PUNCTUAL_MISFIRE_GRACE
    if late and settle_alone(first, now, policy).decision.run is None:
        raise InvalidFields({"schedule": [MISSED.format(first=format_instant(first))]})
    return first


def _owner(name: str, user: User) -> Group:
    """The team of that name. One that is made for ``user`` has him as its first member.

    InvalidFields, in the same words whether there is none or ``user`` is not in it.
    """
    if name in ROLES:
        raise InvalidFields({"owner": [f"{name!r} is a role and owns no jobs: name a team."]})
    team = team_called(name, user)
    if team is None and has_permission(user, "auth.add_group"):
        team = _new_team(name, user)
    if team is None:
        raise InvalidFields({"owner": [f"{no_team(name)} Ask an administrator for the one or the other."]})
    require(user, Level.EDIT, team)
    return team


def require_right_to_make(definition: JobDefinition, user: User) -> None:
    """Forbidden, unless ``user`` may make such a job for a team that is there."""
    require_level(user, Level.EDIT)
    if not sees_all(user) and team_called(definition.owner, user) is None:
        raise Forbidden(no_team(definition.owner))


def _new_team(name: str, user: User) -> Group | None:
    try:
        return make_team(name, user)
    except InvalidFields as error:
        raise InvalidFields({"owner": error.errors["name"]}) from error


def _save_new(job: Job) -> None:
    with _name_is_free(job.owner, job.name):
        job.save(force_insert=True)


def _save_changes(job: Job, owner: Group, columns: dict[str, Any]) -> Job:
    """Only what differs from the row as it was read: others may have changed the rest. The job with it."""
    differing = {name: value for name, value in columns.items() if getattr(job, name) != value}
    if differing:
        with _name_is_free(owner, columns["name"]):
            Job.objects.filter(id=job.id).update(**differing)
    changed = copy(job)
    for name, value in differing.items():
        setattr(changed, name, value)
    return changed


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
