"""Asking, without the database, whether an execution is over.

Only the database knows for certain that nobody will ask for a container again; workers, which find
containers, have no database. So the question goes through Redis: a worker leaves the execution's id in
the set ``asked`` of its shard, the beat that owns the shard looks at the row and leaves the answer.
Answers that nobody has given, or that Redis has lost, are no answers: the container stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any
from uuid import UUID

from executions.claims import Attempt
from executions.ids import shard_in
from executions.states import TERMINAL, State
from executions.store import Store

ANSWER_KEPT = timedelta(hours=1)
MOST_QUESTIONS = 500
_NO_ROW = -1


@dataclass(frozen=True, slots=True)
class Ending:
    """What the database says. ``attempt``: it and all before it are over. ``known``: there is a row."""

    attempt: int = 0
    known: bool = True

    def is_over(self, attempt: int) -> bool:
        """Whether nobody will ask for the container of this attempt again."""
        return self.known and attempt <= self.attempt


def ending(state: State, attempt: int) -> Ending:
    """Of a row (pure): an execution that goes on has left its earlier attempts."""
    return Ending(attempt if state in TERMINAL else attempt - 1)


class Endings:
    def __init__(self, store: Store) -> None:
        self._store = store

    def ask(self, attempts: Sequence[Attempt]) -> dict[Attempt, Ending]:
        """The answers that are there; whatever has none, or may have ended since, is asked (again)."""
        runs = [run for run, _ in attempts]
        if not runs:
            return {}
        answers = self._store.batch(lambda pipe: [pipe.get(self._answer(run)) for run in runs])
        found = {
            attempt: _read(answer)
            for attempt, answer in zip(attempts, answers, strict=True)
            if answer is not None
        }
        open_ = [(run, n) for run, n in attempts if (run, n) not in found or not found[run, n].is_over(n)]
        if open_:
            self._store.batch(
                lambda pipe: [pipe.sadd(self._asked(shard_in(run)), run.bytes) for run, _ in open_]
            )
        return found

    def questions(self, shards: Iterable[int]) -> list[UUID]:
        """Take up to MOST_QUESTIONS of each shard; whoever asked will ask again if they are not answered."""
        names = [self._asked(shard) for shard in shards]
        found = self._store.batch(lambda pipe: [pipe.spop(name, MOST_QUESTIONS) for name in names])
        return [UUID(bytes=run) for runs in found for run in runs]

    def answer(self, asked: Collection[UUID], known: Mapping[UUID, Ending]) -> None:
        """Leave the answers; ``known``: what there are rows of."""

        def fill(pipe: Any) -> None:
            for run in asked:
                value = known[run].attempt if run in known else _NO_ROW
                pipe.set(self._answer(run), value, ex=ANSWER_KEPT)

        self._store.batch(fill)

    def _asked(self, shard: int) -> str:
        return self._store.key(shard, "asked")

    def _answer(self, run: UUID) -> str:
        return self._store.key(shard_in(run), "over", run.hex)


def _read(answer: bytes) -> Ending:
    attempt = int(answer)
    return Ending(known=False) if attempt == _NO_ROW else Ending(attempt)
