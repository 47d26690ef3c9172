from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest

from beat import dispatcher as dispatching
from beat.dispatcher import Dispatcher, DispatchTimes
from beat.ownership import Ownership
from executions.bus.connection import BusUnavailable, connect
from executions.bus.publishing import EventPublisher, RunMessage, RunPublisher
from executions.bus.topology import RECORDER, event_queue, work_queue
from executions.entries import Entry, spec_head
from executions.events import Event, decode
from executions.ids import execution_id
from executions.runspecs import Spec
from executions.states import EventType
from executions.window import Window
from executions.worker.assignments import read_arguments
from scheduler_project.kernel.clock import utcnow
from tests.integration.making import SPEC, entry_for

QUEUE = "runs-of-the-dispatcher"
LEASE = timedelta(milliseconds=300)


class Refusing(RunPublisher):
    """The broker refuses what is at ``positions``; all else goes to the real one."""

    positions: frozenset[int] = frozenset()
    away = False

    def publish(self, messages: Sequence[RunMessage]) -> set[int]:
        if self.away:
            raise BusUnavailable("away")
        super().publish([m for n, m in enumerate(messages) if n not in self.positions])
        return set(self.positions)


@pytest.fixture
def runs() -> Iterator[Refusing]:
    found = Refusing("executions.run", QUEUE, "test")
    with connect() as connection, connection.channel() as channel:
        for queue in (QUEUE, RECORDER):
            channel.queue_delete(queue)  # type: ignore[attr-defined]
    yield found
    found.close()


@pytest.fixture
def wanted() -> list[tuple[int, bytes]]:
    return []


@pytest.fixture
def dispatcher(
    window: Window, ownership: Ownership, runs: Refusing, wanted: list[tuple[int, bytes]]
) -> Iterator[Dispatcher]:
    times = DispatchTimes(LEASE, timedelta(minutes=5))
    found = Dispatcher(
        window, ownership, runs, EventPublisher(), times, lambda shard, head: wanted.append((shard, head))
    )
    yield found
    found.close()


def due_entries(number: int, spec: Spec = SPEC, shard: int = 3) -> list[Entry]:
    now = utcnow()
    return [entry_for(execution_id(uuid4(), now, "schedule", shard), now, spec) for _ in range(number)]


def drain(queue: Any) -> list[Any]:
    found = []
    with connect() as connection, connection.channel() as channel:
        bound = queue.bind(channel)
        while (message := bound.get(no_ack=True)) is not None:
            found.append(message)
    return found


def sent_runs() -> list[UUID]:
    bodies = [json.loads(message.body)[1] for message in drain(work_queue(QUEUE))]
    return [read_arguments(arguments).execution_id for arguments in bodies]


def queued_events() -> list[Event]:
    return [event for message in drain(event_queue(RECORDER)) for event in decode(message.body)]


def places(window: Window, entries: Sequence[Entry]) -> list[tuple[bool, bool]]:
    found = window.locate(entries)
    return [(place.in_flight, place.sent_at is not None) for place in found]


def test_what_is_due_is_sent_cleared_noted_and_said(dispatcher: Dispatcher, window: Window) -> None:
    entries = [*due_entries(5), *due_entries(2, shard=7)]
    window.add(entries, {SPEC.id: SPEC.canonical})
    dispatcher.tick()
    assert sorted(sent_runs()) == sorted(entry.execution_id for entry in entries)
    assert places(window, entries) == [(False, True)] * 7
    said = queued_events()
    assert {event.execution_id for event in said} == {entry.execution_id for entry in entries}
    assert {event.type for event in said} == {EventType.QUEUED}
    dispatcher.tick()
    assert sent_runs() == []


def test_what_is_refused_stays_in_flight_and_goes_out_after_its_lease(
    dispatcher: Dispatcher, window: Window, runs: Refusing
) -> None:
    entries = due_entries(3)
    window.add(entries, {SPEC.id: SPEC.canonical})
    runs.positions = frozenset({0, 2})
    dispatcher.tick()
    assert sorted(places(window, entries)) == [(False, True), (True, False), (True, False)]
    assert len(queued_events()) == 1
    runs.positions = frozenset()
    dispatcher.tick()
    assert len(sent_runs()) == 1
    time.sleep(LEASE.total_seconds())
    dispatcher.tick()
    assert len(sent_runs()) == 2
    assert places(window, entries) == [(False, True)] * 3


def test_a_broker_that_is_away_marks_nothing_as_sent(
    dispatcher: Dispatcher, window: Window, runs: Refusing
) -> None:
    entries = due_entries(2)
    window.add(entries, {SPEC.id: SPEC.canonical})
    runs.away = True
    assert dispatcher.tick() == dispatching.UNAVAILABLE_S
    assert places(window, entries) == [(True, False)] * 2


def test_a_run_whose_spec_is_missing_waits_in_flight_until_it_is_brought(
    dispatcher: Dispatcher, window: Window, wanted: list[tuple[int, bytes]]
) -> None:
    entries = due_entries(1)
    window.add(entries, {})
    dispatcher.tick()
    assert wanted == [(3, spec_head(SPEC.id))]
    assert places(window, entries) == [(True, False)]
    window.put_specs(3, {SPEC.id: SPEC.canonical})
    time.sleep(LEASE.total_seconds())
    dispatcher.tick()
    assert sent_runs() == [entries[0].execution_id]


def test_a_batch_with_more_specs_than_are_kept_goes_out_whole(
    dispatcher: Dispatcher, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With more jobs than SPECS_KEPT, a later shard's specs must not push out an earlier's."""
    monkeypatch.setattr(dispatching, "SPECS_KEPT", 2)
    specs = [replace(SPEC, command=str(n)) for n in range(6)]
    for _ in range(2):
        entries = [due_entries(1, spec, shard)[0] for shard, spec in enumerate(specs)]
        window.add(entries, {spec.id: spec.canonical for spec in specs})
        dispatcher.tick()
        assert sorted(sent_runs()) == sorted(entry.execution_id for entry in entries)


def test_the_pause_is_until_the_next_run_is_due_but_short(dispatcher: Dispatcher, window: Window) -> None:
    assert dispatcher.tick() == dispatching.IDLE_S
    late = entry_for(execution_id(uuid4(), utcnow(), "schedule", 3), utcnow() + timedelta(milliseconds=40))
    window.add([late], {SPEC.id: SPEC.canonical})
    assert 0 <= dispatcher.tick() <= 0.041
