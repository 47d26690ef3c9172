"""Retries that somebody asks for: the work of an ended run once more, beside the schedule."""

from __future__ import annotations

from datetime import datetime
from uuid import UUID

from django.db import transaction

from access.levels import Level
from access.policy import User, require
from executions.listing import note_run
from executions.models import Execution
from executions.runspecs import Spec
from executions.scheduling import push_due_soon
from executions.states import Trigger
from executions.transitions import insert
from jobs.models import Job
from jobs.occurrences import new_execution
from jobs.snapshots import overridden, store_spec
from scheduler_project.kernel.errors import Conflict, InvalidValue


def retry_run(execution: Execution, user: User, now: datetime) -> UUID:
    """See executions/retrying.py. The job's snapshot of now, so that what was mended is what runs."""
    job = Job.objects.select_related("owner", "spec").filter(id=execution.job_id, archived_at=None).first()
    if job is None:
        raise Conflict("The job of this run was deleted: nothing says how to run it again.")
    require(user, Level.OPERATE, job.owner)
    said = f"a retry of {execution.id}, asked for by {user.get_username()}"
    with transaction.atomic():
        new = new_execution(
            job,
            execution.scheduled_for,
            Trigger.MANUAL,
            key=f"retry {execution.id} {now.isoformat()}",
            spec_id=_spec_of(job, execution),
            check_at=now,
            message=said,
            retry_of=execution.id,
        )
        entries = insert([new])
        note_run(execution.id, user, "retried", {"retry": str(new.id)})
    push_due_soon(entries, now)
    return new.id


def _spec_of(job: Job, execution: Execution) -> UUID:
    """With the parameters that the run had for itself alone."""
    own = execution.spec.body.get("overrides")
    if not own:
        return job.spec_id
    try:
        return store_spec(overridden(Spec.from_json(job.spec.body), own)).id
    except InvalidValue as error:
        raise Conflict(f"Its parameters do not fit the job any more: {error.message}") from error
