"""What REST of jobs and pools answers with, for the schema."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from executions.api.reads import Reads
from executions.api.shapes import flag, instant, page_of, shaped, sparse, text, whole
from jobs.api.fields import JOB_FIELDS


class PoolShown(serializers.Serializer[Any]):
    """A limit on how many runs are under way at once, and how it is used."""

    name = text("Its name, by which jobs name it.")
    slots = whole("How many runs may be under way at once; 0: none begins.")
    team = text(
        "The team all of whose runs it limits by itself; null: it limits the jobs that name it.", null=True
    )
    description = text("For people; may be empty.")
    active = whole("How many runs have a place now; null while Redis does not answer.", null=True)
    waiting = whole("How many runs wait for a place; null while Redis does not answer.", null=True)
    exceeded = whole(
        "How often more runs than places were seen; null while Redis does not answer.", null=True
    )
    createdAt = instant("When it was made.")


PoolPage = page_of(sparse(PoolShown, "PoolInList"), "PoolPage")


class JobShown(serializers.Serializer[Any]):
    """A job, in the fields that it is made of, and how it stands."""

    id = serializers.UUIDField(help_text="Its id.")
    createdAt = instant("When it was made.")
    createdBy = text("Who made it; may be empty.")
    managedBy = text("The set of files that declares it, or null.", null=True)
    pausedAt = instant("Since when it is paused, or null.", null=True)
    problem = text("Why its latest change could not be carried out, or null.", null=True)
    nextRunAt = instant("When it is due next, or null.", null=True)

    def get_fields(self) -> dict[str, Any]:
        """With those that it is made of, in the normal form, of which what is taken has all."""
        return {**{name: _shown(reader) for name, reader in JOB_FIELDS.items()}, **super().get_fields()}


def _shown(reader: Reads[Any]) -> serializers.JSONField:
    schema = dict(reader.schema)
    return shaped(schema, schema.pop("description"))


JobPage = page_of(sparse(JobShown, "JobInList"), "JobPage")


class JobMade(serializers.Serializer[Any]):
    """A job that was made, and its first run."""

    jobId = serializers.UUIDField(help_text="The job.")
    firstExecutionId = serializers.UUIDField(help_text="Its first run, which waits for its time.")
    nextRunAt = instant("When that is due.")


class RunStarted(serializers.Serializer[Any]):
    """A run that was asked for."""

    executionId = serializers.UUIDField(help_text="The run.")


class BackfilledRunShown(serializers.Serializer[Any]):
    """A run of a time of the past."""

    executionId = serializers.UUIDField(help_text="The run.")
    scheduledFor = instant("The time that it stands for.")
    new = flag("Whether it is made by this request; otherwise there was one.")


class BackfillShown(serializers.Serializer[Any]):
    """The runs of a span of the past."""

    dryRun = flag("Whether they are only listed.")
    maxActive = whole("How many of them are under way at once.")
    count = whole("How many runs there are.")
    new = whole("How many of them are new.")
    executions = BackfilledRunShown(many=True, help_text="The runs, in the order of their times.")


class PreviewShown(serializers.Serializer[Any]):
    """When a schedule fires."""

    fires = shaped(
        {"type": "array", "items": {"type": "string", "format": "date-time"}},
        "Its next fires, UTC, in order.",
    )
    description = text("The schedule in a sentence.")
    warnings = shaped({"type": "array", "items": {"type": "string"}}, "What may surprise, in sentences.")


_NAMED_TEXTS = {"type": "object", "additionalProperties": {"type": "string"}}
_TEXTS = {"type": "array", "items": {"type": "string"}}


class RenderedShown(serializers.Serializer[Any]):
    """What a run would be."""

    plannedFor = instant("The time that it would be planned for.")
    command = shaped(_TEXTS, "The words that would be started; none: what the image runs by itself.")
    image = text("The image; empty for a process of the worker's machine.")
    env = shaped(_NAMED_TEXTS, "Its environment, without secrets.")
    secretEnv = shaped(_NAMED_TEXTS, "The names of its secrets, by variable.")
    passedEnv = shaped(_TEXTS, "Variables that a worker hands on from its own environment.")
    container = shaped(_NAMED_TEXTS, "What is set of its container, in words.")
    problem = shaped({"type": ["string", "null"]}, "Why it could not start; null where it could.")
