"""The snapshot of a job: all that its runs need, in one immutable RunSpec."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from containers.options import merged, read_options
from executions.models import RunSpec
from executions.runspecs import Spec
from jobs.definitions import read_field
from jobs.models import Job
from scheduler_project.kernel.errors import InvalidFields, InvalidValue

_CHECKED = ("name", "type", "command", "image", "env", "parameters", "container", "schedule", "queue")


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
        jitter_s=job.jitter.total_seconds(),
        retries=job.retries,
        retry_delay_s=job.retry_delay.total_seconds(),
        timeout_s=job.timeout.total_seconds() if job.timeout else None,
        container=merged(task.container if task else {}, job.container),
        queue=job.queue,
        priority=str(job.priority),
        pool=job.pool.name if job.pool else "",
        max_active=job.max_active,
        retry=job.retry_policy,
    )


def overridden(spec: Spec, parameters: Mapping[str, Any]) -> Spec:
    """``spec`` for one run, with ``parameters`` in place of those of the same name.

    InvalidValue where the two together are more than a job may have.
    """
    if not parameters:
        return spec
    own = read_field("parameters", {**spec.parameters, **parameters})
    return replace(spec, parameters=own, overrides=dict(parameters))


def store_spec(spec: Spec) -> RunSpec:
    """The row of ``spec``: equal specs are one row."""
    row, _ = RunSpec.objects.get_or_create(
        id=spec.id, defaults={"job_id": spec.job_id, "body": spec.to_json()}
    )
    return row


def check_row(job: Job) -> None:
    """InvalidValue for a row that no run can be made of: it was written past the definitions, by SQL."""
    for name in _CHECKED:
        try:
            read_field(name, getattr(job, name))
        except InvalidValue as error:
            raise InvalidValue(f"{name}: {error.message}", field=name) from error
        except InvalidFields as error:
            raise InvalidValue(error.message, field=name) from error
    try:
        read_field("retryPolicy", job.retry_policy)
    except InvalidFields as error:
        raise InvalidValue(error.message, field="retryPolicy") from error
    _check_container(job)


def _check_container(job: Job) -> None:
    """What a job and its task say of the container must go together, too."""
    try:
        if job.task is not None:
            read_field("container", job.task.container)
            read_options(merged(job.task.container, job.container))
    except (InvalidFields, InvalidValue) as error:
        raise InvalidValue(f"with its task: {error.message}", field="container") from error
