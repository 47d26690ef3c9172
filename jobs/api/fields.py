"""The fields of a job as REST takes them: readers of jobs/definitions.py, with schema and words."""

from __future__ import annotations

from typing import Any

from executions.api.reads import Reads, nullable
from executions.exit_codes import MOST_CODE
from executions.priorities import DEFAULT_QUEUE, QUEUE_NAME, RESERVED_QUEUES, Priority
from executions.retry_policies import LEAST_FACTOR, MOST_FACTOR, RETRIED, Backoff
from jobs.api.container_schema import CONTAINER, VARIABLE
from jobs.api.schedule_schema import LENGTH, SCHEDULE
from jobs.definitions import (
    MAX_ACTIVE,
    MAX_COMMAND,
    MAX_COUNT,
    MAX_IMAGE,
    MAX_NAME,
    MAX_OWNER,
    MAX_RETRIES,
    READERS,
)
from jobs.models import MisfirePolicy, Overlap, WorkType
from jobs.pool_names import POOL_NAME

Json = dict[str, Any]
_SEEN = r"[^\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]"
LINE = rf"^{_SEEN}*[^\s\x00-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]{_SEEN}*$"
TEMPLATE: Json = {"type": "string", "format": "template"}


def _one_of(choices: Any) -> Json:
    return {"type": "string", "enum": [str(choice) for choice in choices]}


_MISFIRE: Json = {
    "anyOf": [
        _one_of(MisfirePolicy),
        {
            "type": "object",
            "properties": {
                "policy": {**_one_of(MisfirePolicy), "description": "Which of them; default `latest`."},
                "maxAge": {
                    "anyOf": [LENGTH, {"type": "null"}],
                    "description": "None older than this; above 0.",
                },
                "maxCount": {
                    "type": ["integer", "null"],
                    "minimum": 1,
                    "maximum": MAX_COUNT,
                    "description": "At most so many, the latest.",
                },
            },
            "additionalProperties": False,
        },
    ]
}
_OPTIONAL_LENGTH: Json = {"anyOf": [LENGTH, {"type": "null"}]}
_RETRY_POLICY: Json = {
    "type": ["object", "null"],
    "properties": {
        "backoff": {
            "enum": [*map(str, Backoff), None],
            "description": "`fixed` (default): all pauses are `retryDelay`; `exponential`: each is"
            " `factor` times the one before, at most `maxDelay`.",
        },
        "factor": {
            "type": ["number", "null"],
            "minimum": LEAST_FACTOR,
            "maximum": MOST_FACTOR,
            "description": "Of `exponential`; default 2.",
        },
        "maxDelay": {**_OPTIONAL_LENGTH, "description": "The longest pause of `exponential`; default 1d."},
        "jitter": {
            "type": ["number", "null"],
            "minimum": 0,
            "maximum": 1,
            "description": "The part of each pause that chance may take away; default 0. Of one attempt of"
            " one run it takes always the same.",
        },
        "reasons": {
            "type": ["array", "null"],
            "items": {"enum": list(RETRIED)},
            "maxItems": 100,
            "description": "Only failures with one of these reasons, or of `exitCodes`, are retried; neither"
            " given: all that another attempt may heal.",
        },
        "exitCodes": {
            "type": ["array", "null"],
            "items": {"type": "integer", "minimum": 1, "maximum": MOST_CODE},
            "maxItems": 100,
            "description": "The same by exit code.",
        },
        "maxElapsed": {
            **_OPTIONAL_LENGTH,
            "description": "No attempt is made later than this after the first start; above 0.",
        },
    },
    "additionalProperties": False,
}
_SCHEMAS: dict[str, tuple[Json, str]] = {
    "name": (
        {"type": "string", "pattern": LINE, "maxLength": MAX_NAME},
        "One line; unique for its owner.",
    ),
    "task": (
        nullable({"type": "string", "pattern": LINE, "maxLength": MAX_NAME, "format": "task"}),
        "A reusable task, by its name, or null: what the job leaves out is the task's, `type` too.",
    ),
    "type": (
        _one_of(WorkType),
        "How `command` is understood: words that are started (`Python`), a script for `sh` (`Script`), SQL"
        " for `psql`, words that replace the image's command (`Container`, which needs `image`).",
    ),
    "command": (
        {**TEMPLATE, "maxLength": MAX_COMMAND},
        "What is run; may be a template. Blank for `Container` only.",
    ),
    "schedule": (SCHEDULE, "When it runs."),
    "owner": (
        {"type": "string", "pattern": LINE, "maxLength": MAX_OWNER, "format": "team"},
        "The team that owns it. One that does not exist is made, where the user may add groups.",
    ),
    "description": ({"type": "string", "pattern": r"^[^\x00]*$", "maxLength": 10_000}, "For people."),
    "image": (
        {"type": "string", "format": "image", "maxLength": MAX_IMAGE},
        "The container's image; empty: the deployment's for this type.",
    ),
    "env": (
        {"type": "object", "propertyNames": {"pattern": VARIABLE}, "additionalProperties": TEMPLATE},
        "Variables of its environment; values may be templates. At most 64,000 characters of JSON.",
    ),
    "parameters": (
        {"type": "object", "propertyNames": {"pattern": "^[A-Za-z_]\\w*$"}, "format": "parameters"},
        "Its parameters; texts in them may be templates. Names that differ in capitals only are one name. At"
        " most 64,000 characters of JSON.",
    ),
    "container": (CONTAINER, "What its container needs."),
    "retries": (
        {"type": "integer", "minimum": 0, "maximum": MAX_RETRIES},
        "Further attempts after the first has failed; default 0.",
    ),
    "retryDelay": (LENGTH, "The pause before the first further attempt, by default before each; default 5m."),
    "retryPolicy": (_RETRY_POLICY, "How the pauses grow, which failures are retried, and for how long."),
    "timeout": ({"anyOf": [LENGTH, {"type": "null"}]}, "The limit of an attempt, at least 1s; null: none."),
    "overlap": (
        _one_of(Overlap),
        "What becomes of a time that comes while a run of the schedule has not ended; default `forbid`.",
    ),
    "misfire": (_MISFIRE, "Which planned times that have passed are run; default `latest`."),
    "jitter": (LENGTH, "Spreads jobs of one instant over this time, at most 1d; default 0s."),
    "queue": (
        {
            "type": "string",
            "pattern": f"^{QUEUE_NAME.pattern}$",
            "not": {"enum": sorted(RESERVED_QUEUES)},
        },
        f"Which workers run it; default `{DEFAULT_QUEUE}`.",
    ),
    "priority": (_one_of(Priority), "What goes first in the queue; default `normal`."),
    "pool": (
        nullable({"type": "string", "pattern": f"^{POOL_NAME.pattern}$", "format": "pool"}),
        "A pool that its runs need a place in, or null.",
    ),
    "maxActive": (
        {"type": ["integer", "null"], "minimum": 1, "maximum": MAX_ACTIVE},
        "How many of its runs are under way at once, however begun; null: no limit.",
    ),
}
JOB_FIELDS: dict[str, Reads[Any]] = {
    name: Reads(read, _SCHEMAS[name][0]).saying(_SCHEMAS[name][1]) for name, (_, read) in READERS.items()
}
