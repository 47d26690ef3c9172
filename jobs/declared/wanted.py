"""A job as a file declares it, and what may be wrong with it (pure)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from jobs.definitions import JobDefinition
from scheduler_project.kernel.errors import PermanentError


@dataclass(frozen=True, slots=True)
class Place:
    """Where in the files; lines count from 1."""

    path: str
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(frozen=True, slots=True)
class Wanted:
    """One declared job."""

    definition: JobDefinition
    place: Place

    @property
    def key(self) -> tuple[str, str]:
        return self.definition.owner, self.definition.name


@dataclass(frozen=True, slots=True)
class Problem:
    """What is wrong, where; ``field`` is empty where it is no single one."""

    place: Place
    field: str
    text: str

    def __str__(self) -> str:
        return ": ".join(part for part in (str(self.place), self.field, self.text) if part)


class Refused(PermanentError):
    """What the files declare cannot be done; nothing was changed."""

    def __init__(self, problems: Sequence[Problem]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = list(problems)


def declared_twice(wanted: Sequence[Wanted]) -> list[Problem]:
    first: dict[tuple[str, str], Wanted] = {}
    problems = []
    for item in wanted:
        before = first.setdefault(item.key, item)
        if before is not item:
            owner, name = item.key
            text = f"{owner} has a job {name!r} already, at {before.place}."
            problems.append(Problem(item.place, "name", text))
    return problems
