"""An outage, and what stands for the workers after it.

The jobs and their waiting runs are written as they would have been left behind: the run that was next when
everything stopped, planned back then. Beats, recorders, PostgreSQL, Redis and RabbitMQ are real. Only the
workers are not: ``Answers`` takes the messages of runs off their queue and says, as events, that each
started and ended at once. Starting a process for each of ten thousand runs a minute would measure the
machine, not the scheduler.
"""

from __future__ import annotations

import json
import threading
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from kombu import Connection, Consumer, Producer

from executions.bus.topology import EVENTS, RUNS, work_queue
from executions.events import Event, encode
from executions.ids import due_of
from executions.states import EventType
from scheduler_project.kernel.clock import utcnow
from tests.system import System

BATCH = 200
POPULATE = """
from datetime import datetime, timedelta
from uuid import uuid4
from django.conf import settings
from django.contrib.auth.models import Group
from django.db import transaction
from executions.ids import shard_of
from executions.models import RunSpec
from executions.transitions import insert
from jobs.models import Job
from jobs.occurrences import occurrence
from jobs.snapshots import spec_of

first, created = datetime.fromisoformat(first), datetime.fromisoformat(created)
team, _ = Group.objects.get_or_create(name="team")
with transaction.atomic():
    jobs = []
    for policy in policies:
        for number in range(count):
            identity, second = uuid4(), number % spread
            jobs.append(Job(
                id=identity, name=f"{policy} {number}", owner=team, type="Script", command="true",
                schedule={"cron": cron.format(second=second), "timezone": "UTC"},
                misfire=policy, overlap=overlap,
                shard=shard_of(identity, settings.PUNCTUAL_SHARDS), created_at=created, settled_revision=1,
            ))
    specs = [spec_of(job) for job in jobs]
    RunSpec.objects.bulk_create(
        [RunSpec(id=spec.id, job_id=spec.job_id, body=spec.to_json()) for spec in specs], batch_size=1000
    )
    for job, spec in zip(jobs, specs):
        job.spec_id = spec.id
    Job.objects.bulk_create(jobs, batch_size=1000)
    for start in range(0, len(jobs), 5000):
        insert([
            occurrence(job, first + timedelta(seconds=int(job.name.split()[1]) % spread))
            for job in jobs[start:start + 5000]
        ])
result = len(jobs)
"""


@dataclass(frozen=True, slots=True)
class Outage:
    """``count`` jobs of each policy, by ``cron``, whose runs since ``first`` nothing has started.

    ``spread``: over how many seconds their fires are spread (``{second}`` in ``cron``).
    """

    policies: tuple[str, ...]
    count: int
    cron: str
    first: datetime
    spread: int = 1
    overlap: str = "forbid"

    def leave_behind(self, system: System) -> None:
        system.console.run(
            POPULATE,
            policies=list(self.policies),
            count=self.count,
            cron=self.cron,
            spread=self.spread,
            overlap=self.overlap,
            first=self.first.isoformat(),
            created=(self.first - timedelta(seconds=1)).isoformat(),
        )


@dataclass(slots=True)
class Answers:
    """Takes every run off the queue and says that it started and ended; ``taken``: which, and when."""

    url: str
    taken: list[tuple[UUID, datetime]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)
    _thread: threading.Thread | None = None
    _hand: list[Any] = field(default_factory=list)

    def __enter__(self) -> Answers:
        self._thread = threading.Thread(target=self._work)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        assert self._thread is not None
        self._thread.join()

    def late(self, since: datetime, until: datetime) -> list[timedelta]:
        """How late the runs that were planned in [since, until) arrived here."""
        return [at - due_of(run) for run, at in self.taken if since <= due_of(run) < until]

    def _work(self) -> None:
        with Connection(self.url) as connection, connection.channel() as channel:
            producer = Producer(channel)
            consumer = Consumer(
                channel,
                [work_queue(RUNS)],
                on_message=self._hand.append,
                prefetch_count=5 * BATCH,
                accept=["json"],
            )
            consumer.consume()
            while not self._stop.is_set():
                self._collect(connection)
                self._answer(producer)

    def _collect(self, connection: Connection) -> None:
        timeout_s = 0.1
        while len(self._hand) < BATCH:
            try:
                connection.drain_events(timeout=timeout_s)
            except TimeoutError:
                return
            timeout_s = 0.002

    def _answer(self, producer: Producer) -> None:
        batch = self._hand[:]  # more may arrive while py-amqp publishes
        if not batch:
            return
        now = utcnow()
        runs = [json.loads(message.body)[1] for message in batch]
        self.taken += [(UUID(run["execution"]), now) for run in runs]
        events = [event for run in runs for event in _said(run, now)]
        producer.publish(
            encode(events),
            exchange=EVENTS.name,
            routing_key="events",
            content_type="application/json",
            content_encoding="utf-8",
            delivery_mode=2,
        )
        batch[-1].ack(multiple=True)
        del self._hand[: len(batch)]


def _said(run: dict[str, Any], now: datetime) -> list[Event]:
    common: dict[str, Any] = {
        "execution_id": UUID(run["execution"]),
        "attempt": run["attempt"],
        "at": now,
        "worker": "answers",
    }
    return [
        Event(type=EventType.STARTED, **common),
        Event(type=EventType.COMPLETED, reason="succeeded", exit_code=0, started_at=now, **common),
    ]
