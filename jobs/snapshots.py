"""The snapshot of a job: all that its runs need, in one immutable RunSpec."""

from __future__ import annotations

from executions.models import RunSpec
from executions.runspecs import Spec
from jobs.definitions import read_field
from jobs.models import Job
from scheduler_project.kernel.errors import InvalidValue

_CHECKED = ("name", "type", "command", "image", "env", "parameters", "schedule")


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
        memory_bytes=task.memory_bytes if task else None,
        cpus=task.cpus if task else None,
    )


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
