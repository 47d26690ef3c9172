"""What a caller says of a job, read and checked as a whole (pure but for no clock).

REST, the admin and the commands all come through here; ``InvalidFields`` names every field
that is wrong by the name it has in the REST body.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import timedelta
from functools import partial
from typing import Any

from containers.options import RESERVED, read_options
from executions.priorities import DEFAULT_QUEUE, Priority, read_queue
from executions.retry_policies import normal_policy
from executions.worker.commands import variable_name
from executions.worker.rendering import TemplateRefused, check_template, counted_steps
from jobs.models import Job, MisfirePolicy, Missed, Overlap, WorkType
from jobs.pool_names import pool_name
from jobs.schedules import Schedule, parse_schedule
from jobs.work import check_together
from scheduler_project.kernel.durations import format_duration, parse_duration
from scheduler_project.kernel.errors import InvalidFields, InvalidValue, complaints
from scheduler_project.kernel.texts import control_character, outgrows, shortened, shown, unsendable

MAX_RETRIES = 100
MAX_NAME = 200
MAX_OWNER = 150  # of a Django group
MAX_IMAGE = 500
MAX_COMMAND = 100_000
MAX_JSON = 64_000
MAX_DEPTH = 64
MAX_COUNTED = 2_000_000  # characters that are counted to be told; of what has more, only that
MAX_COUNT = 1_000_000
MAX_ACTIVE = 10_000
MAX_JITTER = timedelta(days=1)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_PARAMETER = re.compile(r"[A-Za-z_]\w*", re.ASCII)


@dataclass(frozen=True, slots=True)
class Misfire:
    """Which planned times that have passed are run: not older than ``max_age``, the last ``max_count``."""

    policy: str = MisfirePolicy.LATEST
    max_age: timedelta | None = None
    max_count: int | None = None


@dataclass(frozen=True, kw_only=True)
class JobDefinition:
    name: str
    schedule: Schedule
    owner: str
    task: str = ""  # whose defaults it takes over
    type: str = ""  # empty: the task's
    command: str = ""
    description: str = ""
    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    container: Mapping[str, Any] = field(default_factory=dict)  # the normal form of containers/options.py
    retries: int = 0
    retry_delay: timedelta = timedelta(minutes=5)
    retry_policy: Mapping[str, Any] = field(default_factory=dict)  # of executions/retry_policies.py
    timeout: timedelta | None = None
    overlap: str = Overlap.FORBID
    misfire: Misfire = field(default_factory=Misfire)
    jitter: timedelta = timedelta(0)
    queue: str = DEFAULT_QUEUE
    priority: str = str(Priority.NORMAL)
    pool: str = ""
    max_active: int | None = None
    managed_by: str = ""  # no field of a request: only files that declare jobs set it


@counted_steps()
def read_definition(given: Mapping[str, Any]) -> JobDefinition:
    """The definition in a REST body. InvalidFields for whatever is missing, unknown or not allowed.

    All its templates have one budget, as they will have when they are rendered.
    """
    errors = complaints(
        sorted(set(given) - set(READERS), key=str),
        lambda name: f"{shown(name)} is not a field of a job. Allowed: {', '.join(READERS)}.",
    )
    values: dict[str, Any] = {}
    required = OF_ALL if given.get("task") else REQUIRED
    for name, (attribute, read) in READERS.items():
        if name not in given and name not in required:
            continue
        try:
            values[attribute] = read(given[name], name)
        except KeyError:
            errors[name] = ["This field is required."]
        except InvalidValue as error:
            errors[name] = [error.message]
        except InvalidFields as error:
            errors |= error.errors
    if not errors:
        errors = check_together(values)
    if errors:
        raise InvalidFields(errors)
    return JobDefinition(**values)


@counted_steps()
def read_field(name: str, value: object) -> Any:
    """One field by its name in the REST body. InvalidValue where it breaks its rule; InvalidFields, by paths,
    where fields within it do."""
    return READERS[name][1](value, name)


def read_missed(body: Mapping[str, Any]) -> Missed:
    """What a request to resume says of the times that passed meanwhile; nothing: they are skipped."""
    if unknown := sorted(set(body) - {"missed"}, key=str):
        raise InvalidFields(complaints(unknown, lambda _: "It is not known here. Allowed: missed."))
    try:
        return Missed(_choice(body.get("missed", str(Missed.SKIP)), "missed", allowed=Missed.values))
    except InvalidValue as error:
        raise InvalidFields({"missed": [error.message]}) from error


def definition_body(job: Job) -> dict[str, Any]:
    """What ``read_definition`` reads the job back from: the fields of the REST body."""
    return {
        "name": job.name,
        "task": job.task.name if job.task else None,
        "type": job.type,
        "command": job.command,
        "schedule": job.schedule,
        "owner": job.owner.name,
        "description": job.description,
        "image": job.image,
        "env": job.env,
        "parameters": job.parameters,
        "container": job.container,
        "retries": job.retries,
        "retryDelay": format_duration(job.retry_delay),
        "retryPolicy": job.retry_policy,
        "timeout": _length(job.timeout),
        "overlap": job.overlap,
        "misfire": {
            "policy": job.misfire,
            "maxAge": _length(job.misfire_max_age),
            "maxCount": job.misfire_max_count,
        },
        "jitter": format_duration(job.jitter),
        "queue": job.queue,
        "priority": str(job.priority),
        "pool": job.pool.name if job.pool else None,
        "maxActive": job.max_active,
    }


def changed_body(job: Job, changes: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of the REST body with ``changes``. Another task brings its own type."""
    body = definition_body(job)
    if changes.get("task"):
        del body["type"]
    return {**body, **changes}


def _length(length: timedelta | None) -> str | None:
    return None if length is None else format_duration(length)


def _text(value: object, name: str, *, longest: int = MAX_NAME, blank: bool = False) -> str:
    if not isinstance(value, str):
        raise InvalidValue(f"{shown(value)} is not a text.", field=name)
    if complaint := unsendable(value):
        raise InvalidValue(complaint, field=name)
    if not value.strip() and not blank:
        raise InvalidValue("This field may not be blank.", field=name)
    if len(value) > longest:
        raise InvalidValue(f"{len(value)} characters; at most {longest} are allowed.", field=name)
    return value


def _line(value: object, name: str, *, longest: int = MAX_NAME, blank: bool = False) -> str:
    """One line that shows as it is, wherever it is shown: on a terminal, in a log, in a header."""
    line = _text(value, name, longest=longest, blank=blank).strip()
    if found := control_character(line):
        raise InvalidValue(
            f"{shown(line)} holds the control character U+{ord(found):04X}: allowed is one line of text.",
            field=name,
        )
    return line


def _owner(value: object, name: str) -> str:
    return _line(value, name, longest=MAX_OWNER)


def _image(value: object, name: str) -> str:
    return _line(value, name, longest=MAX_IMAGE, blank=True)


def _optional_text(value: object, name: str) -> str:
    return _text(value, name, longest=10_000, blank=True).strip()


def _choice(value: object, name: str, *, allowed: Sequence[str]) -> str:
    if value not in allowed:
        raise InvalidValue(f"{shown(value)} is not one of {', '.join(allowed)}.", field=name)
    return str(value)


def _command(value: object, name: str) -> str:
    return _template(_text(value, name, longest=MAX_COMMAND, blank=True), name)


def _template(text: str, name: str) -> str:
    try:
        check_template(text)
    except TemplateRefused as error:
        raise InvalidValue(f"Not a template: {error.message}", field=name) from error
    return text


def _schedule(value: object, name: str) -> Schedule:
    return parse_schedule(value, field=name)


def _object(value: object, name: str) -> dict[str, Any]:
    if not isinstance(value, Mapping):
        raise InvalidValue(f"{shown(value)} is not an object of names and values.", field=name)
    _check_amount(value, name)
    if _is_deeper(value, MAX_DEPTH):
        raise InvalidValue(f"It is nested more than {MAX_DEPTH} deep.", field=name)
    try:
        text = json.dumps(value, allow_nan=False)
    except ValueError as error:
        raise InvalidValue(f"Not JSON: {error}.", field=name) from error
    if len(text) > MAX_JSON:
        raise InvalidValue(f"{len(text)} characters; at most {MAX_JSON} are allowed.", field=name)
    for item in _texts(value):
        if complaint := unsendable(item):
            raise InvalidValue(f"{shown(item)}: {complaint}", field=name)
    return dict(value)


def _check_amount(value: object, name: str) -> None:
    if outgrows(value, MAX_COUNTED):
        text = f"More than {MAX_COUNTED} characters; at most {MAX_JSON} are allowed."
        raise InvalidValue(text, field=name)


def _is_deeper(value: object, most: int) -> bool:
    """Whether more than ``most`` objects and lists lie in each other; REST's bodies have such a limit too."""
    level = [value]
    for _ in range(most):
        level = [item for outer in level for item in _items(outer) if isinstance(item, Mapping | list)]
    return bool(level)


def _items(outer: object) -> Iterable[object]:
    if isinstance(outer, Mapping):
        return outer.values()
    return outer if isinstance(outer, list) else ()


def _texts(value: object) -> Iterator[str]:
    """Every text in ``value``, names of objects included, at whatever depth."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping | list):
        for item in (*value.keys(), *value.values()) if isinstance(value, Mapping) else value:
            yield from _texts(item)


def _parameters(value: object, name: str) -> dict[str, Any]:
    found = _object(value, name)
    seen: dict[str, str] = {}
    for key, item in found.items():
        if not _PARAMETER.fullmatch(key):
            raise InvalidValue(
                f"{shown(key)} is not a parameter's name: letters, digits and '_'.", field=name
            )
        if (other := seen.setdefault(variable_name(key), key)) != key:
            raise InvalidValue(
                f"{shown(other)} and {shown(key)} would both be {shortened(variable_name(key), 100)}.",
                field=name,
            )
        for text in _texts(item):
            _template(text, name)
    return found


def _environment(value: object, name: str) -> dict[str, str]:
    found = _object(value, name)
    for key, item in found.items():
        if not _VARIABLE.fullmatch(key):
            raise InvalidValue(f"{shown(key)} is not a variable's name: letters, digits and '_'.", field=name)
        if key.startswith(RESERVED):
            raise InvalidValue(
                f"{shortened(key, 100)} is not for env: names with {' and '.join(RESERVED)} are the"
                " scheduler's and the parameters'.",
                field=name,
            )
        if not isinstance(item, str):
            raise InvalidValue(f"{shortened(key, 100)}: {shown(item)} is not a text.", field=name)
        _template(item, name)
    return found


def _container(value: object, name: str) -> dict[str, Any]:
    """In its normal form. InvalidFields, by paths; what is too much is so as a whole."""
    _check_amount(value, name)
    return _object(read_options({} if value is None else value, name).to_json(), name)


def _retries(value: object, name: str) -> int:
    return whole_number(value, name, 0, MAX_RETRIES)


def _delay(value: object, name: str) -> timedelta:
    return parse_duration(value, field=name)


def _timeout(value: object, name: str) -> timedelta | None:
    return None if value is None else parse_duration(value, field=name, minimum=timedelta(seconds=1))


def _jitter(value: object, name: str) -> timedelta:
    length = parse_duration(value, field=name)
    if length > MAX_JITTER:
        raise InvalidValue(f"{shown(value)} is longer than {format_duration(MAX_JITTER)}.", field=name)
    return length


def _misfire(value: object, name: str) -> Misfire:
    """A policy's name, or an object of policy and limits."""
    if not isinstance(value, Mapping):
        return Misfire(_choice(value, name, allowed=MisfirePolicy.values))
    if unknown := sorted(set(value) - {"policy", "maxAge", "maxCount"}, key=str):
        raise InvalidValue(f"{shown(unknown[0])} is not one of policy, maxAge, maxCount.", field=name)
    age, count = value.get("maxAge"), value.get("maxCount")
    return Misfire(
        _choice(value.get("policy", str(MisfirePolicy.LATEST)), name, allowed=MisfirePolicy.values),
        None if age is None else parse_duration(age, field=name, minimum=timedelta(milliseconds=1)),
        None if count is None else _count(count, name),
    )


def _task(value: object, name: str) -> str:
    """The name of a task, or None for none; whether there is one is found when the job is saved."""
    return "" if value is None else _line(value, name)


def _pool(value: object, name: str) -> str:
    """The name of a pool, or None for none; whether there is one is found when the job is saved."""
    return "" if value is None else pool_name(value, name)


def _most_active(value: object, name: str) -> int | None:
    return None if value is None else whole_number(value, name, 1, MAX_ACTIVE)


def whole_number(value: object, name: str, least: int, most: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int) or not least <= value <= most:
        raise InvalidValue(f"{shown(value)} is not a whole number from {least} to {most}.", field=name)
    return value


def _count(value: object, name: str) -> int:
    return whole_number(value, name, 1, MAX_COUNT)


OF_ALL = ("name", "schedule", "owner")
REQUIRED = (*OF_ALL, "type", "command")
READERS: dict[str, tuple[str, Callable[[Any, str], Any]]] = {
    "name": ("name", _line),
    "task": ("task", _task),
    "type": ("type", partial(_choice, allowed=WorkType.values)),
    "command": ("command", _command),
    "schedule": ("schedule", _schedule),
    "owner": ("owner", _owner),
    "description": ("description", _optional_text),
    "image": ("image", _image),
    "env": ("env", _environment),
    "parameters": ("parameters", _parameters),
    "container": ("container", _container),
    "retries": ("retries", _retries),
    "retryDelay": ("retry_delay", _delay),
    "retryPolicy": ("retry_policy", normal_policy),
    "timeout": ("timeout", _timeout),
    "overlap": ("overlap", partial(_choice, allowed=Overlap.values)),
    "misfire": ("misfire", _misfire),
    "jitter": ("jitter", _jitter),
    "queue": ("queue", read_queue),
    "priority": ("priority", partial(_choice, allowed=[str(item) for item in Priority])),
    "pool": ("pool", _pool),
    "maxActive": ("max_active", _most_active),
}
