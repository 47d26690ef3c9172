"""What REST of executions answers with, for the schema."""

from __future__ import annotations

from typing import Any

from rest_framework import serializers

from executions.api.shapes import instant, one_of, page_of, shaped, sparse, text, whole
from executions.diagnosis import Code
from executions.states import EventType, State, Trigger


class ExecutionShown(serializers.Serializer[Any]):
    """A run of a job."""

    id = serializers.UUIDField(help_text="Its id; ids are in the order of the planned times.")
    jobId = serializers.UUIDField(help_text="Its job.")
    jobName = text("What the job was called when this run was planned.")
    owner = text("The team that owns it.")
    trigger = one_of(
        Trigger, "What asked for it: its schedule, at its time or later (`catchup`), or somebody."
    )
    status = one_of(State, "Its state.")
    reason = text("Why it is where it is, in a word; may be empty.")
    message = text("The same in a sentence; may be empty.")
    explanation = text(
        "How it ended, or its last attempt did, in words; null where nothing has ended yet.",
        null=True,
    )
    attempt = whole("Which attempt it is at, from 1.")
    missed = whole("How many planned times were missed and stand in this one row.")
    scheduledFor = instant("When it was planned for.")
    retryOf = serializers.UUIDField(
        allow_null=True, help_text="The ended run whose work somebody wanted done once more, or null."
    )
    movedTo = instant("The time that somebody gave it, or null.", null=True)
    dueAt = instant("When it will be sent to a worker; null where it waits for something else.", null=True)
    queuedAt = instant("When it was sent to the workers, or null.", null=True)
    startedAt = instant("When its latest attempt began, or null.", null=True)
    finishedAt = instant("When it ended, or null.", null=True)
    cancelRequestedAt = instant("When somebody asked that it end, or null.", null=True)
    exitCode = whole("Of its command; null where there is none.", null=True)
    worker = text("The worker that has or had it; may be empty.")
    parameters = shaped({"type": "object"}, "Its parameters, as given: templates are not filled in.")


class ExecutionDetails(ExecutionShown):
    """A run of a job, what keeps it, and what was made of it."""

    retries = serializers.ListField(
        child=serializers.UUIDField(), help_text="The runs that do its work once more, the oldest first."
    )
    waitsFor = text(
        "What keeps a run that was sent to the workers, in words; null where it is only a free slot.",
        null=True,
    )


ExecutionPage = page_of(sparse(ExecutionShown, "ExecutionInList"), "ExecutionPage")


class ExecutionEventShown(serializers.Serializer[Any]):
    """A statement about a run, as it came."""

    id = serializers.UUIDField(help_text="Its id.")
    type = one_of(EventType, "What happened.")
    attempt = whole("In which attempt, from 1.")
    at = instant("When it happened, by the clock of who says so.")
    recordedAt = instant("When it was written down.")
    worker = text("The worker that says so; may be empty.")
    reason = text("Why, in a word; may be empty.")
    message = text("Why, in a sentence; may be empty.")
    exitCode = whole("Of the command; null where there is none.", null=True)


class StateSpan(serializers.Serializer[Any]):
    """A time that a run spent in one state."""

    status = one_of(State, "The state.")
    attempt = whole("In which attempt, from 1.")
    to = instant("When it left the state; null where it is in it.", null=True)
    seconds = serializers.FloatField(
        allow_null=True, help_text="How long, in seconds, until now where it is in it; null for an end."
    )

    def get_fields(self) -> dict[str, Any]:
        """``from`` is a word of Python's."""
        return {**super().get_fields(), "from": instant("Since when it was in the state.")}


class HistoryShown(serializers.Serializer[Any]):
    """What happened to a run, and how long it was in each state."""

    events = ExecutionEventShown(many=True, help_text="Its events, in order.")
    states = StateSpan(many=True, help_text="The states that they led through, in order.")
    secondsInState = shaped(
        {"type": "object", "additionalProperties": {"type": "number"}},
        "How long it was in each state in all, in seconds, by the name of the state.",
    )


class CancelAsked(serializers.Serializer[Any]):
    """What became of a wish to cancel."""

    id = serializers.UUIDField(help_text="The run.")
    status = one_of(
        (State.CANCELLED, State.ACTIVE), "`Cancelled`: it had not begun. `Active`: it is asked to stop."
    )


class RunNamed(serializers.Serializer[Any]):
    """Another run that has to do with this one."""

    id = serializers.UUIDField(help_text="The id of that run.")
    jobName = serializers.CharField(help_text="What its job is called.")
    status = serializers.ChoiceField(choices=[str(state) for state in State], help_text="Its status now.")


class CauseShown(serializers.Serializer[Any]):
    """One thing that keeps a run."""

    code = serializers.ChoiceField(
        choices=[str(code) for code in Code], help_text="What keeps it, for programs; more may be added."
    )
    sentence = serializers.CharField(help_text="What keeps it, for people.")
    advice = serializers.CharField(allow_blank=True, help_text="What to do about it; empty: nothing.")
    at = serializers.DateTimeField(
        allow_null=True, help_text="Until when it keeps it, or since when; null where that is not known."
    )
    runs = RunNamed(many=True, help_text="The runs that it waits for.")
    facts = serializers.DictField(help_text="The names and numbers in the sentence; which, the code says.")


class WhyShown(serializers.Serializer[Any]):
    """Why a run is not running."""

    id = serializers.UUIDField(help_text="The id of the run.")
    status = serializers.ChoiceField(choices=[str(state) for state in State], help_text="Its status.")
    summary = serializers.CharField(help_text="The sentence of the first cause.")
    causes = CauseShown(many=True, help_text="All that keeps it, what keeps it now first.")
