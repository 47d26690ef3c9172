"""Schedules as JSON schema: what jobs/schedules/reading.py reads, and in which form it is answered with."""

from __future__ import annotations

from typing import Any

from executions.api.parameters import INSTANT
from executions.api.reads import named, nullable
from jobs.schedules import DayMatch, DstGap, DstOverlap
from jobs.schedules.fields import LONGEST_TEXT
from scheduler_project.kernel.durations import LONGEST

Json = dict[str, Any]

LENGTH: Json = named(
    "Length",
    {
        "description": "A length of time: a number and a unit (`ms`, `s`, `m`, `h`, `d`, `w`), or several; a"
        f" bare number is seconds. To the millisecond, at most {LONGEST.days}d. Answers have the text.",
        "anyOf": [
            {
                "type": "string",
                "format": "length-of-time",
                "pattern": r"^([0-9]{1,9}(\.[0-9]{1,6})?(ms|[wdhms]))+$|^[0-9]{1,9}$",
            },
            {"type": "integer", "minimum": 0, "maximum": int(LONGEST.total_seconds())},
        ],
        "examples": ["90s", "5m", "1h30m", "250ms"],
    },
)
_CRON: Json = {"type": "string", "format": "cron", "minLength": 1, "maxLength": LONGEST_TEXT}


def _kind(name: str, main: Json, **others: Json) -> Json:
    properties = {name: main, **others}
    return {
        "type": "object",
        "properties": properties,
        "required": [name],
        "additionalProperties": False,
    }


def _choice(kind: Any, says: str) -> Json:
    return {"type": "string", "enum": [str(item) for item in kind], "description": says}


_SPAN: Json = {
    "start": {**nullable(INSTANT), "description": "Nothing fires before it. UTC in answers."},
    "end": {**nullable(INSTANT), "description": "Nothing fires after it. UTC in answers."},
}
SCHEDULE: Json = named(
    "Schedule",
    {
        "description": "When a job runs. Answers have the object, in full.",
        "anyOf": [
            {
                **_CRON,
                "description": "A cron expression of five fields or six, in UTC or the IANA zone behind it,"
                " `every 30s`, `at` with an instant, `after 5m` or `now`.",
            },
            _kind(
                "cron",
                {**_CRON, "description": "A cron expression of five fields, or six with the second first."},
                timezone={"type": "string", "format": "time-zone", "description": "IANA name; default UTC."},
                dstGap=_choice(DstGap, "What runs of times that the clock skips; default `runAfter`."),
                dstOverlap=_choice(DstOverlap, "Which of times that come twice; default `first`."),
                dayMatch=_choice(
                    DayMatch,
                    "Whether one of day of month and day of week is to match, or both; default `or`.",
                ),
                **_SPAN,
            ),
            _kind(
                "every",
                {**LENGTH, "description": "The interval, at least 1s."},
                anchor={
                    **INSTANT,
                    "description": "From which the intervals are counted; default: the creation.",
                },
                **_SPAN,
            ),
            _kind("at", {**INSTANT, "description": "Once, then; at most an hour ago."}),
            _kind("after", {**LENGTH, "description": "Once, so long after the creation."}),
            _kind("now", {"const": True, "description": "Once, at once."}),
        ],
        "examples": [
            "0 2 * * *",
            "0 2 * * * Europe/Berlin",
            "every 10s",
            {"every": "10s"},
            {"at": "2026-12-24T18:00:00Z"},
            "now",
        ],
    },
)
