"""The reaper: removes the containers of an engine that nobody will ask for again.

Of the workers of one engine one leads. It lists the containers that carry the label of its namespace,
leaves out those that somebody has claimed, and asks the database about the rest (executions/endings.py):

over       the execution has ended, or a later attempt has taken this one's place: it is removed,
           killed first where it still runs
not over   it stays, whatever has become of its claim: its worker may merely be slow, or Redis empty;
           the sweep sends it to be taken up
unknown    there is no such execution (another database, a dropped day): what runs stays, and is told;
           what ended more than a day ago is removed

So nothing running is removed on the word of Redis, and nothing at all where the database is silent.
Images that were pulled for runs are kept within their share of the disk.
"""

from __future__ import annotations

import logging
import re
import uuid
from datetime import datetime, timedelta
from uuid import UUID

from containers.runtime import Runtime
from containers.spec import container_name
from executions.claims import Attempt, KnownClaim, known_claims
from executions.endings import Ending, Endings
from executions.engines import engine_queue
from executions.store import Script, Store
from executions.worker.engine import CLOSE_WITHIN_S, WorkerEngine
from scheduler_project.kernel.clock import Clock, monotonic
from scheduler_project.kernel.errors import PunctualError
from scheduler_project.kernel.loop import BackgroundService

logger = logging.getLogger(__name__)

PERIOD_S = 5.0
IMAGES_EVERY_S = 60.0
UNKNOWN_KEPT = timedelta(days=1)
UNKNOWN_LOOK = timedelta(hours=1)
_LEAD = Script("executions.lua", "lead.lua")
_LEADS_FOR_MS = int(6 * PERIOD_S * 1000)
_NAME = re.compile(r"punctual-([0-9a-f]{32})-([0-9]+)")


class Reaper:
    """``images_bytes``: what images that were pulled for runs may take of the engine's disk."""

    def __init__(
        self, runtime: Runtime, store: Store, engine: WorkerEngine, clock: Clock, images_bytes: int
    ) -> None:
        self._runtime = runtime
        self._store = store
        self._engine = engine
        self._clock = clock
        self._endings = Endings(store)
        self._token = uuid.uuid4().hex
        self._look_at: dict[Attempt, datetime] = {}
        self._images_bytes = images_bytes
        self._images_at = monotonic() + IMAGES_EVERY_S
        self._service = BackgroundService("reaper", self.run_once)

    def start(self) -> None:
        self._service.start()

    def close(self) -> None:
        self._service.stop(CLOSE_WITHIN_S)

    def run_once(self) -> float:
        """Look at every container of the engine, where this worker leads; the seconds until the next time."""
        if self._engine.identity and self._leads():
            names = self._runtime.owned(self._store.namespace)
            found = [attempt for name in names if (attempt := attempt_of(name)) is not None]
            unclaimed = self._unclaimed(found)
            self._look_at = {attempt: self._look_at[attempt] for attempt in self._look_at.keys() & set(found)}
            for attempt, ending in self._endings.ask(unclaimed).items():
                self._judge(attempt, ending)
            self._tidy_images()
        return PERIOD_S

    def _tidy_images(self) -> None:
        if monotonic() >= self._images_at:
            self._images_at = monotonic() + IMAGES_EVERY_S
            for image in self._runtime.keep_images_within(self._images_bytes):
                logger.info("image_removed", extra={"image": image})

    def _leads(self) -> bool:
        leader = self._store.shared_key("reaper", engine_queue(self._engine.identity))
        return bool(self._store.run(_LEAD, [leader], [self._token, _LEADS_FOR_MS]))

    def _unclaimed(self, attempts: list[Attempt]) -> list[Attempt]:
        claims = known_claims(self._store, [run for run, _ in attempts])
        return [
            attempt
            for attempt, claim in zip(attempts, claims, strict=True)
            if not _is_held(claim, attempt[1])
        ]

    def _judge(self, attempt: Attempt, ending: Ending) -> None:
        """One that cannot be removed must not keep the others."""
        try:
            if ending.is_over(attempt[1]):
                self._remove(attempt, "its execution is over")
            elif not ending.known:
                self._judge_unknown(attempt)
        except (PunctualError, OSError) as error:
            logger.warning("container_left", extra={**_who(attempt), "error": str(error)})

    def _judge_unknown(self, attempt: Attempt) -> None:
        now = self._clock.now()
        if now < self._look_at.get(attempt, now):
            return
        self._look_at[attempt] = now + UNKNOWN_LOOK
        container = self._runtime.attach(container_name(*attempt))
        ended = None if container is None else container.wait(0)
        if ended is not None and now - ended.finished_at > UNKNOWN_KEPT:
            self._remove(attempt, "nobody knows its execution, and it ended long ago")
        else:
            logger.info("container_unknown", extra=_who(attempt))

    def _remove(self, attempt: Attempt, why: str) -> None:
        self._runtime.forget(container_name(*attempt))
        logger.warning("container_reaped", extra={**_who(attempt), "why": why})


def attempt_of(name: str) -> Attempt | None:
    """The attempt that a container of that name is (pure; the other way is ``container_name``)."""
    match = _NAME.fullmatch(name)
    return (UUID(hex=match[1]), int(match[2])) if match else None


def _is_held(claim: KnownClaim | None, attempt: int) -> bool:
    return claim is not None and claim.attempt == attempt and not claim.outcome


def _who(attempt: Attempt) -> dict[str, object]:
    return {"execution": attempt[0], "attempt": attempt[1]}
