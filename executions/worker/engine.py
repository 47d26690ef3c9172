"""A worker knows its engine: says that it has a worker, takes what waits for it, knows what is elsewhere."""

from __future__ import annotations

import logging
from collections.abc import Callable
from datetime import timedelta

from containers.runtime import Runtime, RuntimeUnavailable
from executions.claims import Attempt
from executions.engines import Engines, Site, engine_queue, known_sites
from executions.store import Store
from scheduler_project.kernel.clock import from_millis
from scheduler_project.kernel.loop import BackgroundService

logger = logging.getLogger(__name__)

ANNOUNCE_S = 2.0
CLOSE_WITHIN_S = 1.0
"""So long a worker that ends waits for a service that asks its engine, which may be silent."""


class WorkerEngine:
    """The engine of one worker. ``known`` is called once, with its identity, when it has answered."""

    def __init__(self, runtime: Runtime, store: Store, wait: timedelta, known: Callable[[str], None]) -> None:
        self.identity = ""
        self._runtime = runtime
        self._store = store
        self._engines = Engines(store)
        self._wait = wait
        self._known = known
        self._complaint = ""
        self._service = BackgroundService("engine", self._announce)
        self._service.start()

    def site_of(self, attempt: Attempt) -> Site | None:
        """Where an attempt that has begun is, if that is known. StoreUnavailable."""
        return known_sites(self._store, [attempt])[0]

    def is_elsewhere(self, site: Site | None) -> bool:
        """Whether a container is on an engine that this worker does not reach."""
        return site is not None and site.is_elsewhere(self.identity)

    def is_for_others(self, site: Site) -> bool:
        """Whether a worker of its own engine is to take it up, or may be the one. StoreUnavailable."""
        if not self.is_elsewhere(site):
            return False
        now = from_millis(self._store.now_ms())
        return site.is_for_others(self.identity, now, site.given_up_at(self._engines.seen(), self._wait))

    def close(self) -> None:
        self._service.stop(CLOSE_WITHIN_S)

    def _announce(self) -> float:
        if not self.identity:
            self._check()
            self.identity = self._runtime.identity()
            self._known(self.identity)
            logger.info("engine_known", extra={"engine": self.identity, "queue": engine_queue(self.identity)})
        self._engines.announce(self.identity)
        return ANNOUNCE_S

    def _check(self) -> None:
        """Say at the start what runs would meet later. They are taken all the same: it may be put right."""
        try:
            self._runtime.ping()
        except RuntimeUnavailable as error:
            if error.message != self._complaint:
                logger.warning(
                    "runtime_not_ready", extra={"runtime": self._runtime.name, "error": error.message}
                )
            self._complaint = error.message
