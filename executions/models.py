"""What happened: RunSpec, Execution and ExecutionEvent.

The tables of executions and events are partitioned by day of the due time (``PARTITION BY
RANGE`` over the execution's id, see executions/ids.py); their SQL is in
executions/sql/schema.sql. No code but executions/transitions.py writes ``state``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar

from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from executions.states import TERMINAL, EventType, State, Trigger

_TERMINAL_VALUES = sorted(str(state) for state in TERMINAL)


class RunSpec(models.Model):
    """The immutable, content-addressed snapshot of all that a run needs (``body``: see runspecs.py)."""

    id = models.UUIDField(primary_key=True, editable=False)
    job_id = models.UUIDField(db_index=True, editable=False)
    body = models.JSONField(editable=False)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        verbose_name = "run specification"

    def __str__(self) -> str:
        return f"{self.body.get('job_name', self.job_id)} ({self.id})"


class Execution(models.Model):
    """One run of a job: one due time, one row, any number of attempts."""

    id = models.UUIDField(primary_key=True, editable=False)
    job_id = models.UUIDField(editable=False)
    spec = models.ForeignKey(RunSpec, on_delete=models.DO_NOTHING, db_index=False, editable=False)
    owner_id = models.IntegerField(editable=False, help_text="The team (group) that owns the job.")
    shard = models.SmallIntegerField(editable=False)
    trigger = models.TextField(
        choices=[(str(t), t.name.replace("_", " ").title()) for t in Trigger], editable=False
    )
    scheduled_for = models.DateTimeField(editable=False, help_text="The planned time, UTC.")
    state = models.TextField(
        choices=[(str(s), str(s)) for s in State],
        default=str(State.WAITING),
        db_default=str(State.WAITING),
        editable=False,
    )
    reason = models.TextField(default="", db_default="", editable=False, help_text="Why it is where it is.")
    message = models.TextField(default="", db_default="", editable=False)
    attempt = models.SmallIntegerField(default=1, db_default=1, editable=False)
    generation = models.IntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="Raised so that what was sent of this run before does not start.",
    )
    failures = models.SmallIntegerField(default=0, db_default=0, editable=False)
    losses = models.SmallIntegerField(default=0, db_default=0, editable=False)
    missed = models.IntegerField(
        default=0,
        db_default=0,
        editable=False,
        help_text="Fires that did not run, in this one row.",
    )
    worker = models.TextField(default="", db_default="", editable=False)
    exit_code = models.IntegerField(null=True, editable=False)
    queued_at = models.DateTimeField(null=True, editable=False)
    started_at = models.DateTimeField(null=True, editable=False)
    first_started_at = models.DateTimeField(null=True, editable=False, help_text="Of its first attempt.")
    finished_at = models.DateTimeField(null=True, editable=False)
    cancel_requested_at = models.DateTimeField(null=True, editable=False)
    check_at = models.DateTimeField(
        null=True, editable=False, help_text="When the scheduler looks at this row again, whatever its state."
    )
    catch_up_until = models.DateTimeField(
        null=True, editable=False, help_text="The last of the missed fires that are run after this one."
    )
    moved_to = models.DateTimeField(null=True, editable=False, help_text="The time that somebody gave it.")
    turned_away_at = models.DateTimeField(
        null=True,
        editable=False,
        help_text="Since when it waits to catch up while regular runs keep it from it.",
    )
    most_active = models.SmallIntegerField(
        null=True, editable=False, help_text="How many backfill runs of the job may be under way at once."
    )
    retry_of = models.UUIDField(
        null=True, editable=False, help_text="The ended run whose work somebody wanted done once more."
    )
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        indexes: ClassVar[list[Any]] = [
            models.Index(
                fields=["shard", "check_at"], name="execution_check", condition=Q(check_at__isnull=False)
            ),
            models.Index(
                fields=["shard", "check_at"],
                name="execution_catching_up",
                condition=Q(check_at__isnull=False, trigger__in=["catchup", "backfill"]),
            ),
            models.Index(fields=["job_id", "-id"], name="execution_by_job"),
            models.Index(fields=["owner_id", "-id"], name="execution_by_owner"),
            models.Index(fields=["job_id"], name="execution_live", condition=Q(finished_at__isnull=True)),
        ]
        constraints: ClassVar[list[Any]] = [
            models.CheckConstraint(
                name="execution_state_known", condition=Q(state__in=[str(state) for state in State])
            ),
            models.CheckConstraint(
                name="execution_finished_iff_terminal",
                condition=Q(state__in=_TERMINAL_VALUES, finished_at__isnull=False)
                | (~Q(state__in=_TERMINAL_VALUES) & Q(finished_at__isnull=True)),
            ),
            models.CheckConstraint(
                name="execution_checked_iff_waiting_or_active",
                condition=Q(state__in=[str(State.WAITING), str(State.ACTIVE)], check_at__isnull=False)
                | (~Q(state__in=[str(State.WAITING), str(State.ACTIVE)]) & Q(check_at__isnull=True)),
            ),
            models.CheckConstraint(name="execution_attempt_counts", condition=Q(attempt__gte=1)),
        ]

    def __str__(self) -> str:
        return f"{self.id} ({self.state})"

    @property
    def caption(self) -> str:
        """What people know it by: its job, and when it was planned."""
        return f"{self.spec.body['job_name']}, {self.scheduled_for:%Y-%m-%d %H:%M:%S} UTC"

    @property
    def wanted_at(self) -> datetime:
        """When it was to start, jitter not added: what it is late by counts from here.

        A retry keeps the planned time of what it repeats, and is wanted since somebody asked for it.
        """
        return self.moved_to or (self.scheduled_for if self.retry_of is None else self.created_at)


class ExecutionEvent(models.Model):
    """One immutable statement about an execution; the database refuses UPDATE and DELETE of rows."""

    pk = models.CompositePrimaryKey("execution_id", "id")
    execution_id = models.UUIDField(editable=False)
    id = models.UUIDField(editable=False)
    type = models.TextField(choices=[(str(t), str(t)) for t in EventType], editable=False)
    attempt = models.SmallIntegerField(editable=False)
    at = models.DateTimeField(editable=False)
    recorded_at = models.DateTimeField(db_default=Now(), editable=False)
    worker = models.TextField(default="", db_default="", editable=False)
    reason = models.TextField(default="", db_default="", editable=False)
    message = models.TextField(default="", db_default="", editable=False)
    exit_code = models.IntegerField(null=True, editable=False)

    class Meta:
        verbose_name = "event"

    def __str__(self) -> str:
        return f"{self.type} of attempt {self.attempt} of {self.execution_id}"


class Minute(models.Model):
    """What happened in one minute to the runs of one team, as one connection counted it (see tallies.py).

    ``what``: a ``Tally``; ``bucket``: of the lateness, how late, otherwise 0. ``writer``: the connection, or
    0 where those of several have been put together.
    """

    pk = models.CompositePrimaryKey("minute", "owner_id", "what", "bucket", "writer")
    minute = models.DateTimeField(editable=False)
    owner_id = models.IntegerField(editable=False)
    what = models.TextField(editable=False)
    bucket = models.SmallIntegerField(editable=False)
    writer = models.IntegerField(editable=False)
    count = models.IntegerField(editable=False)

    def __str__(self) -> str:
        return f"{self.count} {self.what} in {self.minute:%Y-%m-%d %H:%M} UTC"


class Trouble(models.Model):
    """How often a job failed for one reason in an hour, or started late, as one connection counted it.

    ``what``: "failed" or "late". ``undone``: failed attempts that another attempt followed. ``latest``: the
    last execution of which it was counted.
    """

    pk = models.CompositePrimaryKey("hour", "job_id", "what", "reason", "writer")
    hour = models.DateTimeField(editable=False)
    job_id = models.UUIDField(editable=False)
    what = models.TextField(editable=False)
    reason = models.TextField(editable=False)
    writer = models.IntegerField(editable=False)
    owner_id = models.IntegerField(editable=False)
    count = models.IntegerField(editable=False)
    undone = models.IntegerField(editable=False)
    worst_s = models.FloatField(editable=False)
    latest = models.UUIDField(editable=False)

    def __str__(self) -> str:
        return f"{self.count} {self.what} of {self.job_id} since {self.hour:%Y-%m-%d %H:%M} UTC"


class DeadLetter(models.Model):
    """No table: a message on the broker's queue of dead letters, for its permissions and its audit trail."""

    id = models.CharField(primary_key=True, max_length=32, editable=False)

    class Meta:
        managed = False
        verbose_name = "dead letter"
        default_permissions = ("view",)
        permissions: ClassVar[Any] = [("settle_deadletter", "Can replay and discard dead letters")]

    def __str__(self) -> str:
        return self.id
