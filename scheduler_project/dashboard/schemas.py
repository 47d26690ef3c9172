"""What the overview is made of, for the schema of REST."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

_Shape = serializers.Serializer[Any]


class _Counts(_Shape):
    due = serializers.IntegerField(help_text="Runs that were due in it, sent or not.")
    started = serializers.IntegerField(help_text="Attempts that started in it.")
    completedNormally = serializers.IntegerField(help_text="Runs that ended normally in it.")
    completedAbnormally = serializers.IntegerField(help_text="Runs that ended abnormally in it.")
    cancelled = serializers.IntegerField(help_text="Runs that were cancelled in it.")
    skipped = serializers.IntegerField(help_text="Rows of runs that were skipped in it.")
    latenessP50Seconds = serializers.FloatField(
        allow_null=True, help_text="Half of the starts were not later than this, in seconds; null: no start."
    )
    latenessP99Seconds = serializers.FloatField(
        allow_null=True, help_text="99 of 100 starts were not later than this, in seconds; null: no start."
    )


class OverviewMinute(_Counts):
    """What happened in one minute."""

    minute = serializers.DateTimeField(help_text="When it began, UTC.")


class OverviewHour(_Counts):
    """What happened in the last hour, and how it stands."""

    overdue = serializers.IntegerField(
        help_text="Runs that should have been sent by now and have not been; at most 10000 are counted."
    )
    notStarted = serializers.IntegerField(
        help_text="Runs that are due now and have not begun, sent or not; at most 10000 are counted."
    )
    running = serializers.IntegerField(help_text="Runs under way now; at most 500 are counted.")


class _Run(_Shape):
    executionId = serializers.UUIDField(help_text="The run.")
    jobId = serializers.UUIDField(help_text="Its job.")
    jobName = serializers.CharField(help_text="What the job was called when the run was made.")
    owner = serializers.CharField(help_text="The team that owns it.")


class RunningRun(_Run):
    """A run under way."""

    startedAt = serializers.DateTimeField(allow_null=True, help_text="Since when, UTC.")


class NextRun(_Run):
    """A run that waits."""

    dueAt = serializers.DateTimeField(help_text="When it is due, UTC.")


class OverviewBeat(_Shape):
    """A beat that is there."""

    name = serializers.CharField(help_text="Host, process and a number of its own.")
    shards = serializers.ListField(child=serializers.IntegerField(), help_text="The shards that it owns.")


class OverviewWorker(_Shape):
    """A worker, and what it runs."""

    name = serializers.CharField(help_text="Host and process.")
    present = serializers.BooleanField(
        allow_null=True, help_text="Whether it was there within 10 seconds; null while Redis does not answer."
    )
    queues = serializers.ListField(
        child=serializers.CharField(), allow_null=True, help_text="The queues of runs that it takes from."
    )
    slots = serializers.IntegerField(allow_null=True, help_text="How many runs it takes at once.")
    running = RunningRun(many=True, help_text="What it runs for your teams.")
    runningOfOtherTeams = serializers.IntegerField(help_text="How many runs of others it has.")


class OverviewQueue(_Shape):
    """What waits in a queue of runs, of one priority."""

    queue = serializers.CharField(help_text="Its name, by which jobs name it.")
    priority = serializers.CharField(help_text="high, normal or low.")
    waiting = serializers.IntegerField(help_text="Runs that wait there for a worker.")
    consumers = serializers.IntegerField(
        allow_null=True, help_text="How many consumers the broker counts; null where it does not know."
    )
    workers = serializers.IntegerField(
        allow_null=True, help_text="How many workers take from it; null while Redis does not answer."
    )


class UnstartedRuns(_Shape):
    """Runs for a queue that are due and have not begun."""

    queue = serializers.CharField(help_text="Its name, by which jobs name it.")
    runs = serializers.IntegerField(help_text="How many they are, sent or not.")
    since = serializers.DateTimeField(
        allow_null=True,
        help_text="When the first was sent, or was due where it was not, UTC; null: all wait for a pool.",
    )
    workers = serializers.IntegerField(
        allow_null=True, help_text="How many workers take from it; null while Redis does not answer."
    )


class SystemQueue(_Shape):
    """What waits in a queue of Punctual's own."""

    queue = serializers.CharField(help_text="The broker's name of it.")
    waiting = serializers.IntegerField(help_text="Messages that wait there.")
    consumers = serializers.IntegerField(
        allow_null=True, help_text="How many consumers the broker counts; null where it does not know."
    )


class _Trouble(_Shape):
    jobId = serializers.UUIDField(help_text="The job.")
    jobName = serializers.CharField(help_text="Its name; empty where it is gone.")
    owner = serializers.CharField(help_text="The team that owns it.")
    latestExecutionId = serializers.UUIDField(help_text="The last run of which it is counted.")


class FailingJob(_Trouble):
    """A job that failed in the last day, for one reason."""

    reason = serializers.CharField(help_text="Why, as in a run's `reason`.")
    attempts = serializers.IntegerField(help_text="Attempts that failed.")
    runs = serializers.IntegerField(help_text="Runs that ended so: the attempts that no other followed.")


class LateJob(_Trouble):
    """A job that was late in the last day."""

    starts = serializers.IntegerField(help_text="Starts more than a second after they were due.")
    notStarted = serializers.IntegerField(
        help_text="Runs that have been due for more than a second now and have not begun."
    )
    worstSeconds = serializers.FloatField(
        help_text="The latest of both, in seconds after it was due, until its start or until now."
    )


class OverviewShown(_Shape):
    """The state of the system and of the runs of your teams."""

    at = serializers.DateTimeField(help_text="When it was like this, UTC; at most a second ago.")
    away = serializers.ListField(
        child=serializers.ChoiceField(choices=["broker", "redis"]),
        help_text="Parts that do not answer: what they know is null.",
    )
    hour = OverviewHour(help_text="The last 60 minutes together.")
    obstacles = serializers.ListField(
        child=serializers.CharField(),
        help_text="What keeps runs from starting, in sentences: no beat, no worker, an unserved queue.",
    )
    notStarted = UnstartedRuns(many=True, help_text="What is due and has not begun, by queue.")
    minutes = OverviewMinute(many=True, help_text="The last 60 minutes, the oldest first.")
    beats = OverviewBeat(many=True, allow_null=True, help_text="The beats that are there.")
    unownedShards = serializers.ListField(
        child=serializers.IntegerField(), allow_null=True, help_text="Shards that no beat owns."
    )
    workers = OverviewWorker(many=True, help_text="The workers, by name.")
    queues = OverviewQueue(many=True, allow_null=True, help_text="The queues of runs.")
    systemQueues = SystemQueue(many=True, allow_null=True, help_text="Punctual's own queues.")
    failures = FailingJob(many=True, help_text="At most 10, the most failed attempts first.")
    late = LateJob(many=True, help_text="At most 10, the most late starts first.")
    nextRuns = NextRun(many=True, help_text="At most 10 runs that are planned next.")
