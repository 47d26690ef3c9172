"""What is to be done so that the database has the jobs that files declare."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from difflib import unified_diff
from enum import StrEnum
from typing import Any

from django.db.models import Q

from jobs.api.presentation import job_json
from jobs.declared.wanted import Place, Problem, Refused, Wanted, declared_twice
from jobs.declared.yaml_text import dump
from jobs.definitions import READERS, JobDefinition
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
    declare are archived. ``adopt``: a job of the same name that has another mark, or none, becomes theirs."""

    name: str
    prune: bool = False
    adopt: bool = False


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
        jobs = Job.objects.filter(names, archived_at=None).select_related("owner", "task")
        found |= {(job.owner.name, job.name): job for job in jobs}
    return found


def _on_stranger(wanted: Wanted, job: Job | None, origin: Origin) -> Iterator[Problem]:
    if job is None or job.managed_by == origin.name or origin.adopt:
        return
    whose = f"belongs to {job.managed_by!r}" if job.managed_by else "was not made from files"
    text = f"{wanted.definition.owner} has a job of this name that {whose}: give --adopt to take it over."
    yield Problem(wanted.place, "name", text)


def _step(wanted: Wanted, job: Job | None, origin: Origin) -> Step:
    marked = Wanted(replace(wanted.definition, managed_by=origin.name), wanted.place)
    declared = declared_form(wanted.definition)
    if job is None:
        return Step(Action.CREATE, wanted.key, _difference({}, declared, wanted.place), marked)
    stored = stored_form(job, wanted.definition)
    if stored == declared and job.managed_by == origin.name:
        return Step(Action.KEEP, wanted.key, "", marked, job)
    return Step(Action.UPDATE, wanted.key, _difference(stored, declared, wanted.place), marked, job)


def _to_archive(wanted: Sequence[Wanted], origin: Origin) -> list[Step]:
    declared = {item.key for item in wanted}
    jobs = Job.objects.filter(managed_by=origin.name, archived_at=None).select_related("owner")
    gone = [job for job in jobs.order_by("owner__name", "name") if (job.owner.name, job.name) not in declared]
    return [Step(Action.ARCHIVE, (job.owner.name, job.name), job=job) for job in gone]


def declared_form(definition: JobDefinition) -> dict[str, Any]:
    """The definition with the names and values of the REST body; what a file leaves out has its default."""
    return {
        "name": definition.name,
        "owner": definition.owner,
        "description": definition.description,
        "type": str(definition.type),
        "image": definition.image,
        "command": definition.command,
        "schedule": definition.schedule.to_json(),
        "parameters": dict(definition.parameters),
        "env": dict(definition.env),
        "retries": definition.retries,
        "retryDelay": format_duration(definition.retry_delay),
        "timeout": None if definition.timeout is None else format_duration(definition.timeout),
        "overlap": str(definition.overlap),
        "misfire": {
            "policy": str(definition.misfire.policy),
            "maxAge": None
            if definition.misfire.max_age is None
            else format_duration(definition.misfire.max_age),
            "maxCount": definition.misfire.max_count,
        },
        "jitter": format_duration(definition.jitter),
    }


def stored_form(job: Job, definition: JobDefinition) -> dict[str, Any]:
    """The job in the same form, in the same order; its schedule as the definition would have put it."""
    shown = job_json(job, None)
    schedule = _unanchored(job.schedule, definition.schedule)
    return {name: shown[name] for name in declared_form(definition) if name in READERS} | {
        "schedule": schedule
    }


def _unanchored(stored: dict[str, Any], declared: Schedule) -> dict[str, Any]:
    """The stored schedule without what its job's creation added to it.

    ``now`` and ``after`` count from the creation, which is over: they are taken to be what
    the job has, so that applying a file again does not run it again.
    """
    try:
        schedule = parse_schedule(stored)
    except InvalidValue:  # a zone that the tzdata of today no longer has
        return stored
    if isinstance(declared, Now | After) and isinstance(schedule, At):
        return declared.to_json()
    if isinstance(declared, Every) and isinstance(schedule, Every) and declared.anchor is None:
        return replace(schedule, anchor=None).to_json()
    return schedule.to_json()


def _difference(stored: dict[str, Any], declared: dict[str, Any], place: Place) -> str:
    before, after = (dump(_in_order(form)).splitlines() if form else [] for form in (stored, declared))
    return "\n".join(unified_diff(before, after, "as it is", str(place), n=1, lineterm=""))


def _in_order(form: dict[str, Any]) -> dict[str, Any]:
    """With what has names of its own by name: the database does not keep the order of an object."""
    return {name: _sorted(value) if name in ("env", "parameters") else value for name, value in form.items()}


def _sorted(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _sorted(item) for name, item in sorted(value.items())}
    return [_sorted(item) for item in value] if isinstance(value, list) else value
