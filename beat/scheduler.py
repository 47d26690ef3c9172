"""The Celery scheduler: what ``celery -A scheduler_project beat`` runs.

    main thread   tick: dispatcher, entries of beat_schedule     Redis, RabbitMQ
    ownership     which shards are ours                          Redis
    neighbours    which shards of others are late                Redis
    sight         whether this beat reaches PostgreSQL           PostgreSQL
    loader        the next five minutes into the window          PostgreSQL, Redis
    sweeper       what is overdue                                PostgreSQL, Redis
    planner       jobs without a next occurrence                 PostgreSQL, Redis
    settler       changes of jobs that nobody has carried out    PostgreSQL, Redis
    pools         places that are free, and their limits           PostgreSQL, Redis
    registrar     which found containers are over                PostgreSQL, Redis
    catchups      missed and backfilled runs, at a limited rate  PostgreSQL, Redis

Each has a thread, so that a database that hangs delays no dispatch and no lease. Shutdown
order: stop popping, stop the sweeps, hand over the shards, close the connections.
"""

from __future__ import annotations

import logging
import os
import socket
import threading
import uuid
from typing import Any

from celery.beat import Scheduler
from django.conf import settings
from django.db import connection

from beat.catchups import CatchUpLimits, CatchUps
from beat.dispatcher import Dispatcher, DispatchTimes
from beat.entries import PERIOD_S, PeriodicEntries
from beat.loader import Loader
from beat.neighbours import Neighbours
from beat.ownership import Ownership
from beat.planner import Planner
from beat.pools import PoolKeeper
from beat.queries import SWEEPS
from beat.registrar import Registrar
from beat.settler import Settler
from beat.sight import Sight
from beat.sweeper import Sweeper, SweepTimes
from executions.alive import say_alive
from executions.bus.publishing import EventPublisher, RunPublisher
from executions.database import DatabaseUnavailable, database_available
from executions.store import StoreUnavailable, default_store
from executions.window import Window
from executions.worker.assignments import TASK
from scheduler_project.kernel.clock import SYSTEM_CLOCK, monotonic
from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.loop import BackgroundService, RunOnce, stop_on_signals
from scheduler_project.kernel.pulse import DATABASE_WITHIN_S, PULSE, WITHIN_S

logger = logging.getLogger(__name__)


class PunctualScheduler(Scheduler):
    """One beat. Start as many as you like: they divide the shards between them."""

    data: dict[str, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._engine: _Engine | None = None
        self._stop = threading.Event()
        super().__init__(*args, **kwargs)

    def setup_schedule(self) -> None:
        self.install_default_entries(self.data)
        self.merge_inplace(self.app.conf.beat_schedule)

    def tick(self, *args: Any, **kwargs: Any) -> float:
        if self._engine is None:
            self._engine = _Engine(self._send_entry)
            if threading.current_thread() is threading.main_thread():
                stop_on_signals(self._stop)
        if self._stop.is_set():
            raise SystemExit
        return self._engine.tick(self.schedule)

    def close(self) -> None:
        engine, self._engine = self._engine, None
        if engine is not None:
            engine.close()
        super().close()

    def _send_entry(self, entry: Any) -> None:
        self.apply_entry(entry, producer=self.producer)

    @property
    def info(self) -> str:
        return f"    . shards -> {settings.PUNCTUAL_SHARDS}"


class _Engine:
    """The parts of one beat, wired up and running."""

    def __init__(self, send_entry: Any) -> None:
        store = default_store()
        window = Window(store, settings.PUNCTUAL_MISFIRE_GRACE)
        identity = f"{socket.gethostname()}/{os.getpid()}/{uuid.uuid4().hex[:12]}"
        sight = Sight()
        self._ownership = Ownership(
            store, identity, settings.PUNCTUAL_SHARDS, settings.PUNCTUAL_BEAT_LEASE, sight.clear
        )
        neighbours = Neighbours(window, self._ownership, settings.PUNCTUAL_SHARDS)
        loader = Loader(window, self._ownership, settings.PUNCTUAL_WINDOW, settings.PUNCTUAL_MISFIRE_GRACE)
        sweep_times = SweepTimes(
            settings.PUNCTUAL_ENQUEUE_TIMEOUT,
            settings.PUNCTUAL_RUN_LEASE,
            settings.PUNCTUAL_MISFIRE_GRACE,
            settings.PUNCTUAL_ENGINE_WAIT,
        )
        catch_up_limits = CatchUpLimits(
            settings.PUNCTUAL_CATCHUP_RATE, settings.PUNCTUAL_CATCHUP_ACTIVE, settings.PUNCTUAL_SHARDS
        )
        self._dispatcher = Dispatcher(
            window,
            neighbours.reached,
            RunPublisher(TASK, identity),
            EventPublisher(),
            DispatchTimes(
                settings.PUNCTUAL_DISPATCH_LEASE,
                settings.PUNCTUAL_ENQUEUE_TIMEOUT,
                settings.PUNCTUAL_ENGINE_WAIT,
            ),
            loader.want_spec,
        )
        self._settler = Settler(self._ownership, SYSTEM_CLOCK)
        self._sweeper = Sweeper(window, self._ownership, EventPublisher(), sweep_times)
        self._entries = PeriodicEntries(store, SYSTEM_CLOCK, send_entry)
        self._entries_at = 0.0
        rounds: dict[str, RunOnce] = {
            "sight": sight.run_once,
            "loader": loader.run_once,
            "sweeper": self._sweeper.run_once,
            "planner": Planner(self._ownership, SYSTEM_CLOCK).run_once,
            "settler": self._settler.run_once,
            "pools": PoolKeeper(store).run_once,
            "registrar": Registrar(store, self._ownership).run_once,
            "catchups": CatchUps(store, self._ownership, catch_up_limits).run_once,
        }
        self._services = [
            BackgroundService("ownership", self._ownership.renew, within_s=WITHIN_S),
            BackgroundService("neighbours", neighbours.run_once, within_s=WITHIN_S),
            *(
                BackgroundService(name, run_once, within_s=DATABASE_WITHIN_S)
                for name, run_once in rounds.items()
            ),
        ]
        say_alive()
        for service in self._services:
            service.start()
        logger.info("beat_started", extra={"beat": identity, "shards": settings.PUNCTUAL_SHARDS})

    def tick(self, schedule: dict[str, Any]) -> float:
        PULSE.expect("tick", WITHIN_S)
        pause = self._dispatcher.tick()
        if monotonic() >= self._entries_at:
            self._entries_at = monotonic() + PERIOD_S
            try:
                self._entries.fire_due(schedule.values())
            except StoreUnavailable as error:
                logger.warning("entries_wait", extra={"error": error.message})
        return pause

    def close(self) -> None:
        PULSE.excuse("tick")
        for service in reversed(self._services):
            service.stop()
        self._settler.close()
        self._ownership.leave()
        self._dispatcher.close()
        self._sweeper.close()
        logger.info("beat_stopped", extra={"beat": self._ownership.identity})


def check_shards() -> None:
    """A lower number of shards than there are runs in would strand them: refuse to start."""
    try:
        with database_available(), connection.cursor() as cursor:
            cursor.execute(SWEEPS["highest_shard"])
            highest = cursor.fetchone()[0]
    except DatabaseUnavailable as error:  # what is in the window is dispatched all the same
        logger.warning("shards_unchecked", extra={"error": error.message})
        return
    connection.close()
    if highest is not None and highest >= settings.PUNCTUAL_SHARDS:
        raise InvalidValue(
            f"PUNCTUAL_SHARDS: {settings.PUNCTUAL_SHARDS} is not allowed while runs of shard {highest}"
            f" have not ended. Set it to at least {highest + 1}."
        )
