"""What can be done with jobs. REST, the admin and the commands are thin edges over these functions."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID, uuid4

from django.conf import settings
from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction

from executions.ids import shard_of
from executions.models import RunSpec
from executions.policy import User, require_member
from executions.runspecs import Spec
from executions.scheduling import push_due_soon
from executions.states import Trigger
from executions.transitions import insert
from jobs.definitions import JobDefinition
from jobs.models import Job
from jobs.occurrences import new_execution, occurrence
from jobs.schedules.kinds import format_instant
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


def run_job(job: Job, user: User, now: datetime) -> UUID:
    """Run a job now, beside its schedule; the id of the execution."""
    require_member(user, job.owner)
    with transaction.atomic():
        new = new_execution(job, now, Trigger.MANUAL, check_at=now)
        entries = insert([new])
    push_due_soon(entries, now)
    return new.id


def spec_of(job: Job) -> Spec:
    """The snapshot of all that a run of ``job`` needs, its task's defaults included."""
    task = job.task
    return Spec(
        job_id=str(job.id),
        job_name=job.name,
        owner=job.owner.name,
        owner_id=job.owner_id,
        type=task.type if task else job.type,
        command=job.command or (task.command if task else ""),
        image=job.image or (task.image if task else ""),
        env={**(task.env if task else {}), **job.env},
        parameters={**(task.parameters if task else {}), **job.parameters},
        schedule=job.schedule,
        retries=job.retries,
        retry_delay_s=job.retry_delay.total_seconds(),
        timeout_s=job.timeout.total_seconds() if job.timeout else None,
        memory_bytes=task.memory_bytes if task else None,
        cpus=task.cpus if task else None,
    )


def store_spec(spec: Spec) -> RunSpec:
    """The row of ``spec``: equal specs are one row."""
    row, _ = RunSpec.objects.get_or_create(
        id=spec.id, defaults={"job_id": spec.job_id, "body": spec.to_json()}
    )
    return row


def _new_job(definition: JobDefinition, owner: Group, user: User, now: datetime) -> Job:
    identity = uuid4()
    return Job(
        id=identity,
        name=definition.name,
        description=definition.description,
        owner=owner,
        type=definition.type,
        command=definition.command,
        image=definition.image,
        env=dict(definition.env),
        parameters=dict(definition.parameters),
        schedule=definition.schedule.anchored(now).to_json(),
        retries=definition.retries,
        retry_delay=definition.retry_delay,
        timeout=definition.timeout,
        shard=shard_of(identity, settings.PUNCTUAL_SHARDS),
        created_at=now,
        created_by=user.get_username(),
    )


def _first_due(definition: JobDefinition, now: datetime) -> datetime:
    first = definition.schedule.anchored(now).first_fire(now)
    if first is None:
        raise InvalidFields({"schedule": ["This schedule does not fire after now."]})
    if first < now - LATEST_START:
        raise InvalidFields({"schedule": [TOO_LATE.format(first=format_instant(first))]})
    return first


def _owner(name: str, user: User) -> Group:
    group = Group.objects.filter(name=name).first()
    if group is None and user.has_perm("auth.add_group"):
        return Group.objects.get_or_create(name=name)[0]
    if group is None:
        raise InvalidFields(
            {"owner": [f"There is no team {name!r}. Ask an administrator to add a group of that name."]}
        )
    require_member(user, group)
    return group


def _save_new(job: Job) -> None:
    try:
        with transaction.atomic():
            job.save(force_insert=True)
    except IntegrityError as error:
        if "job_name_unique_per_owner" in str(error):
            raise Conflict(f"{job.owner.name} already has a job named {job.name!r}.") from error
        raise
