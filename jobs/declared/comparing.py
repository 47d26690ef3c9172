"""What is to be done so that the database has the jobs that files declare."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from difflib import unified_diff
from enum import StrEnum
from typing import Any

from django.db.models import Q

from containers.options import by_path
from jobs.declared.wanted import Place, Problem, Refused, Wanted, declared_twice
from jobs.declared.yaml_text import dump
from jobs.definitions import JobDefinition, definition_body
from jobs.models import Job
from jobs.schedules import After, At, Every, Now, Schedule, parse_schedule
from scheduler_project.kernel.durations import format_duration
from scheduler_project.kernel.errors import InvalidValue

LOOKED_UP_AT_ONCE = 500


class Action(StrEnum):
    CREATE = "create"
    UPDATE = "update"
    KEEP = "keep"
    ARCHIVE = "archive"


@dataclass(frozen=True, slots=True)
class Step:
    """One job and what becomes of it. ``difference``: a unified diff; empty where nothing changes."""

    action: Action
    key: tuple[str, str]
    difference: str = ""
    wanted: Wanted | None = None
    job: Job | None = None

    @property
    def label(self) -> str:
        return "/".join(self.key)


@dataclass(frozen=True, slots=True)
class Origin:
    """``name`` is what the jobs of these files are marked with. ``prune``: those that the files no longer
    declare are archived. ``adopt``: a job of the same name that has another mark, or none, becomes theirs.
    ``way_out``: what to do where one has, in the words of the command."""

    name: str
    prune: bool = False
    adopt: bool = False
    way_out: str = "give --adopt to take it over"

    def __post_init__(self) -> None:
        if not self.name.strip():
            raise InvalidValue(
                f"{self.name!r} is not an origin: jobs that no file declares have none.", field="origin"
            )


def plan_steps(wanted: Sequence[Wanted], origin: Origin) -> list[Step]:
    """In the order of the files. Refused: a job is declared twice, or belongs to another origin."""
    problems = declared_twice(wanted)
    found = _jobs_named([item.key for item in wanted])
    problems += [problem for item in wanted for problem in _on_stranger(item, found.get(item.key), origin)]
    if problems:
        raise Refused(problems)
    steps = [_step(item, found.get(item.key), origin) for item in wanted]
    return steps + (_to_archive(wanted, origin) if origin.prune else [])


def _jobs_named(keys: Sequence[tuple[str, str]]) -> dict[tuple[str, str], Job]:
    found: dict[tuple[str, str], Job] = {}
    for begin in range(0, len(keys), LOOKED_UP_AT_ONCE):
        names = Q()
        for owner, name in keys[begin : begin + LOOKED_UP_AT_ONCE]:
            names |= Q(owner__name=owner, name=name)
        jobs = Job.objects.filter(names, archived_at=None).select_related("owner", "task", "pool")
        found |= {(job.owner.name, job.name): job for job in jobs}
    return found


def _on_stranger(wanted: Wanted, job: Job | None, origin: Origin) -> Iterator[Problem]:
    if job is None or job.managed_by == origin.name or origin.adopt:
        return
    whose = f"belongs to {job.managed_by!r}" if job.managed_by else "was not made from files"
    text = f"{wanted.definition.owner} has a job of this name that {whose}: {origin.way_out}."
    yield Problem(wanted.place, "name", text)


def _step(wanted: Wanted, job: Job | None, origin: Origin) -> Step:
    definition = replace(wanted.definition, managed_by=origin.name)
    if job is not None:
        definition = replace(definition, schedule=_schedule_for(job, definition.schedule))
        if definition.task and not definition.type and job.task is not None:
            definition = replace(definition, type=job.task.type)
    marked = Wanted(definition, wanted.place)
    stored, declared = definition_body(job) if job else {}, declared_form(definition)
    difference = _difference(stored, declared, wanted.place)
    if job is None:
        return Step(Action.CREATE, wanted.key, difference, marked)
    same = not difference and job.managed_by == origin.name
    return Step(Action.KEEP if same else Action.UPDATE, wanted.key, difference, marked, job)


def _schedule_for(job: Job, declared: Schedule) -> Schedule:
    """The declared schedule, or the job's where that says the same and has what its creation added to it.

    ``now`` and ``after`` count from the creation, which is over: they are taken to be what
    the job has, so that applying a file again does not run it again.
    """
    try:
        stored = parse_schedule(job.schedule)
    except InvalidValue:  # a zone that the tzdata of today no longer has
        return declared
    if isinstance(declared, Now | After) and isinstance(stored, At):
        return stored
    unanchored = isinstance(stored, Every) and replace(stored, anchor=None) == declared
    return stored if unanchored else declared


def _to_archive(wanted: Sequence[Wanted], origin: Origin) -> list[Step]:
    declared = {item.key for item in wanted}
    jobs = Job.objects.filter(managed_by=origin.name, archived_at=None).select_related("owner")
    gone = [job for job in jobs.order_by("owner__name", "name") if (job.owner.name, job.name) not in declared]
    return [Step(Action.ARCHIVE, (job.owner.name, job.name), job=job) for job in gone]


def declared_form(definition: JobDefinition) -> dict[str, Any]:
    """The definition with the names and values of the REST body; what a file leaves out has its default."""
    return {
        "name": definition.name,
        "task": definition.task or None,
        "owner": definition.owner,
        "description": definition.description,
        "type": str(definition.type),
        "image": definition.image,
        "command": definition.command,
        "schedule": definition.schedule.to_json(),
        "parameters": dict(definition.parameters),
        "env": dict(definition.env),
        "container": dict(definition.container),
        "retries": definition.retries,
        "retryDelay": format_duration(definition.retry_delay),
        "retryPolicy": dict(definition.retry_policy),
        "timeout": _length(definition.timeout),
        "overlap": str(definition.overlap),
        "misfire": {
            "policy": str(definition.misfire.policy),
            "maxAge": _length(definition.misfire.max_age),
            "maxCount": definition.misfire.max_count,
        },
        "jitter": format_duration(definition.jitter),
        "queue": definition.queue,
        "priority": str(definition.priority),
        "pool": definition.pool or None,
        "maxActive": definition.max_active,
    }


def _length(length: timedelta | None) -> str | None:
    return None if length is None else format_duration(length)


def _difference(stored: dict[str, Any], declared: dict[str, Any], place: Place) -> str:
    if stored == declared:
        return ""
    before, after = (_lines(form, order=declared) for form in (stored, declared))
    return "\n".join(unified_diff(before, after, "as it is", str(place), n=1, lineterm=""))


def _lines(form: dict[str, Any], *, order: Iterable[str]) -> list[str]:
    """The fields in that order; within them by name, since the database keeps no order there."""
    ordered: dict[str, Any] = {}
    for name in order:
        if name == "container":  # many levels: each thing in it by its path
            ordered |= {path: _sorted(value) for path, value in by_path(_sorted(form.get(name, {})))}
        elif name in form:
            ordered[name] = _sorted(form[name])
    return dump(ordered).splitlines() if ordered else []


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(item) for name, item in sorted(value.items())}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
