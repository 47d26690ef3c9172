"""What is to run: Task and Job."""

from __future__ import annotations

import uuid
from datetime import timedelta
from typing import Any, ClassVar

from django.contrib.auth.models import Group
from django.db import models
from django.db.models import F, Q
from django.db.models.functions import Now

from executions.models import RunSpec
from executions.priorities import DEFAULT_QUEUE, Priority

CONTAINER_HELP = "What the runtime is asked for, a JSON object in the normal form of containers/options.py."


class WorkType(models.TextChoices):
    """How a command is understood; see executions/worker/commands.py."""

    PYTHON = "Python", "Python"
    SCRIPT = "Script", "Script"
    SQL = "SQL", "SQL"
    CONTAINER = "Container", "Container"


class Overlap(models.TextChoices):
    """What becomes of an occurrence that is due while a run of the same job has not ended."""

    FORBID = "forbid", "forbid: the next is made when this one has ended"
    ALLOW = "allow", "allow: it runs beside it"
    QUEUE = "queue", "queue: it runs after it"
    REPLACE = "replace", "replace: the running one is cancelled for it"


class MisfirePolicy(models.TextChoices):
    """Which of the planned times that have passed are still run."""

    ALL = "all", "all of them"
    LATEST = "latest", "the latest"
    NONE = "none", "none"


class Missed(models.TextChoices):
    """What becomes of the planned times that passed while a job was paused."""

    SKIP = "skip", "skip them"
    RUN_LATEST = "run-latest", "run the latest"
    RUN_ALL = "run-all", "run them all"


class Task(models.Model):
    """A reusable piece of work, which several jobs may run on their own schedules."""

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200, unique=True)
    description = models.TextField(blank=True, default="")
    type = models.TextField(choices=WorkType.choices, default=WorkType.PYTHON)
    command = models.TextField(blank=True, default="")
    image = models.CharField(max_length=500, blank=True, default="")
    env = models.JSONField(blank=True, default=dict, verbose_name="environment")
    parameters = models.JSONField(blank=True, default=dict, help_text="Default parameters, a JSON object.")
    container = models.JSONField(blank=True, default=dict, db_default={}, help_text=CONTAINER_HELP)
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]

    def __str__(self) -> str:
        return self.name


class Pool(models.Model):
    """At most ``slots`` runs at once: of jobs that name it, or of all jobs of its ``team``."""

    name = models.CharField(max_length=63, unique=True)
    slots = models.PositiveIntegerField(help_text="Runs at once; 0: none begins.")
    team = models.ForeignKey(
        Group,
        on_delete=models.CASCADE,
        null=True,
        blank=True,
        help_text="All runs of this team's jobs count. Empty: those of jobs that name the pool.",
    )
    description = models.TextField(blank=True, default="")
    created_at = models.DateTimeField(db_default=Now(), editable=False)

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["team"], name="pool_of_team"),
        ]

    def __str__(self) -> str:
        return self.name


class Job(models.Model):
    """A task, named or defined inline, with a schedule, parameters, policies, a time-out and an owner.

    ``schedule`` is the normal form of jobs/schedules (``Schedule.to_json``), anchored at the
    job's creation. ``spec`` is the snapshot that its next runs use.

    ``revision`` is raised by a trigger of the database whenever the row changes, by whatever
    route; ``settled_revision`` is the last one that the runs have been brought in line with
    (jobs/changes.py), and ``problem`` says why that could not be done.
    """

    id = models.UUIDField(primary_key=True, default=uuid.uuid4, editable=False)
    name = models.CharField(max_length=200)
    description = models.TextField(blank=True, default="")
    owner = models.ForeignKey(Group, on_delete=models.PROTECT, help_text="The team that owns the job.")
    task = models.ForeignKey(Task, on_delete=models.PROTECT, null=True, blank=True)
    type = models.TextField(choices=WorkType.choices, default=WorkType.PYTHON)
    command = models.TextField(blank=True, default="")
    image = models.CharField(max_length=500, blank=True, default="")
    env = models.JSONField(blank=True, default=dict, verbose_name="environment")
    parameters = models.JSONField(blank=True, default=dict)
    container = models.JSONField(blank=True, default=dict, db_default={}, help_text=CONTAINER_HELP)
    schedule = models.JSONField(help_text='A cron text, "now", or an object such as {"every": "10s"}.')
    retries = models.PositiveSmallIntegerField(default=0, help_text="Further attempts after the first fails.")
    retry_delay = models.DurationField(default=timedelta(minutes=5))
    retry_policy = models.JSONField(
        blank=True, default=dict, db_default={}, help_text="Back-off, and after which failures."
    )
    timeout = models.DurationField(null=True, blank=True, help_text="From the start of the container.")
    overlap = models.TextField(choices=Overlap.choices, default=Overlap.FORBID, db_default=Overlap.FORBID)
    misfire = models.TextField(
        choices=MisfirePolicy.choices, default=MisfirePolicy.LATEST, db_default=MisfirePolicy.LATEST
    )
    misfire_max_age = models.DurationField(null=True, blank=True)
    misfire_max_count = models.PositiveIntegerField(null=True, blank=True)
    jitter = models.DurationField(
        default=timedelta(0), db_default=timedelta(0), help_text="Spreads jobs of one instant over this time."
    )
    queue = models.CharField(
        max_length=63, default=DEFAULT_QUEUE, db_default=DEFAULT_QUEUE, help_text="Which workers run it."
    )
    priority = models.TextField(
        choices=[(str(item), str(item)) for item in Priority],
        default=str(Priority.NORMAL),
        db_default=str(Priority.NORMAL),
    )
    pool = models.ForeignKey(Pool, on_delete=models.PROTECT, null=True, blank=True)
    max_active = models.PositiveIntegerField(null=True, blank=True, help_text="Runs at once, however begun.")
    spec = models.ForeignKey(RunSpec, on_delete=models.PROTECT, editable=False)
    shard = models.SmallIntegerField(editable=False)
    created_at = models.DateTimeField(editable=False)
    created_by = models.CharField(max_length=150, blank=True, default="", editable=False)
    managed_by = models.CharField(
        max_length=100,
        default="",
        db_default="",
        editable=False,
        help_text="Which set of files declares this job; empty: none does, and none takes it away.",
    )
    schedule_since = models.DateTimeField(
        null=True, editable=False, help_text="When it was given the schedule it has; empty: when it was made."
    )
    paused_at = models.DateTimeField(null=True, editable=False)
    archived_at = models.DateTimeField(null=True, editable=False, help_text="Deleted, but for its history.")
    on_resume = models.TextField(
        choices=Missed.choices, default=Missed.SKIP, db_default=Missed.SKIP, editable=False
    )
    revision = models.BigIntegerField(default=1, db_default=1, editable=False)
    settled_revision = models.BigIntegerField(default=0, db_default=0, editable=False)
    problem = models.TextField(default="", db_default="", editable=False)

    class Meta:
        ordering: ClassVar[list[str]] = ["name"]
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(
                fields=["owner", "name"],
                name="job_name_unique_per_owner",
                condition=Q(archived_at__isnull=True),
            ),
            models.CheckConstraint(name="job_retries_at_most_100", condition=Q(retries__lte=100)),
            models.CheckConstraint(
                name="job_retry_delay_not_negative", condition=Q(retry_delay__gte=timedelta(0))
            ),
            models.CheckConstraint(
                name="job_timeout_positive", condition=Q(timeout__isnull=True) | Q(timeout__gt=timedelta(0))
            ),
            models.CheckConstraint(name="job_overlap_known", condition=Q(overlap__in=Overlap.values)),
            models.CheckConstraint(name="job_misfire_known", condition=Q(misfire__in=MisfirePolicy.values)),
            models.CheckConstraint(
                name="job_misfire_limits_positive",
                condition=(Q(misfire_max_age__isnull=True) | Q(misfire_max_age__gt=timedelta(0)))
                & (Q(misfire_max_count__isnull=True) | Q(misfire_max_count__gt=0)),
            ),
            models.CheckConstraint(name="job_on_resume_known", condition=Q(on_resume__in=Missed.values)),
            models.CheckConstraint(
                name="job_priority_known", condition=Q(priority__in=[str(item) for item in Priority])
            ),
            models.CheckConstraint(
                name="job_max_active_positive", condition=Q(max_active__isnull=True) | Q(max_active__gt=0)
            ),
            models.CheckConstraint(name="job_jitter_not_negative", condition=Q(jitter__gte=timedelta(0))),
        ]
        indexes: ClassVar[list[Any]] = [
            models.Index(
                fields=["shard"], name="job_unsettled", condition=~Q(revision=F("settled_revision"))
            ),
        ]

    def __str__(self) -> str:
        return self.name


class RequestedRun(models.Model):
    """Which run an idempotency key stands for; ``digest``: of what was asked with it."""

    job = models.ForeignKey(Job, on_delete=models.CASCADE)
    key = models.CharField(max_length=255)
    digest = models.BinaryField()
    execution_id = models.UUIDField()
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["job", "key"], name="requested_run_once_per_key"),
        ]

    def __str__(self) -> str:
        return f"{self.key} ({self.execution_id})"
