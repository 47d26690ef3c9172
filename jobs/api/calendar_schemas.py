"""What REST of the calendar answers with, for the schema."""

from __future__ import annotations

from typing import Any

from drf_spectacular.utils import inline_serializer
from rest_framework import serializers


class CalendarShown(serializers.Serializer[Any]):
    """How many runs start in each minute of a week."""

    since = serializers.DateTimeField(help_text="The first minute, UTC.")
    jobs = serializers.IntegerField(help_text="How many jobs start in it.")
    unreadable = serializers.IntegerField(
        help_text="How many jobs more have a schedule that can no longer be read, and are left out."
    )
    starts = serializers.ListField(
        child=serializers.IntegerField(), help_text="Starts in each minute, from `since` on."
    )
    busiest = serializers.ListField(
        child=inline_serializer(
            "BusyMinute",
            {
                "minute": serializers.DateTimeField(help_text="The minute, UTC."),
                "starts": serializers.IntegerField(help_text="Starts in it."),
            },
        ),
        help_text="The 20 minutes with the most starts, the most first.",
    )


class CalendarJob(serializers.Serializer[Any]):
    """A job that starts in the minute."""

    jobId = serializers.UUIDField(help_text="Its id.")
    jobName = serializers.CharField(help_text="Its name.")
    owner = serializers.CharField(help_text="The team that owns it.")
    description = serializers.CharField(help_text="Its schedule, as a sentence.")
    jitter = serializers.CharField(help_text="Over how long its starts are spread, such as `10m`; `0s`: not.")
    starts = serializers.IntegerField(help_text="How often it starts in this minute.")
    times = serializers.ListField(
        child=serializers.DateTimeField(), help_text="When, UTC: the first 10 of them."
    )


class CalendarMinute(serializers.Serializer[Any]):
    """The jobs that start in a minute."""

    minute = serializers.DateTimeField(help_text="When it begins, UTC.")
    count = serializers.IntegerField(help_text="How many jobs start in it.")
    jobs = CalendarJob(many=True, help_text="At most 200 of them, by team and name.")
