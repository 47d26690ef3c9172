from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from kombu import Exchange, Queue

from beat import dispatcher as dispatching
from beat.dispatcher import Dispatcher, DispatchTimes
from beat.ownership import Ownership
from executions.bus.connection import connect
from executions.bus.publishing import EventPublisher, RunPublisher
from executions.bus.topology import RECORDER, RUNS, declare, event_queue, work_queue
from executions.entries import Entry, spec_head
from executions.events import Event, decode
from executions.ids import execution_id
from executions.runspecs import Spec
from executions.states import EventType
from executions.window import Window
from executions.worker.assignments import read_arguments
from scheduler_project.kernel.clock import monotonic, utcnow
from tests.integration.counting_store import CountingStore
from tests.integration.making import SPEC, entry_for
from tests.integration.proxy import TcpProxy, proxy_before

LEASE = timedelta(milliseconds=300)


@pytest.fixture
def runs() -> Iterator[RunPublisher]:
    found = RunPublisher("executions.run", "test")
    delete_queues()
    yield found
    found.close()


def delete_queues() -> None:
    with connect() as connection, connection.channel() as channel:
        for queue in (RUNS, RECORDER):
            channel.queue_delete(queue)  # type: ignore[attr-defined]


@pytest.fixture
def wanted() -> list[tuple[int, bytes]]:
    return []


@pytest.fixture
def dispatcher(
    window: Window, ownership: Ownership, runs: RunPublisher, wanted: list[tuple[int, bytes]]
) -> Iterator[Dispatcher]:
    times = DispatchTimes(LEASE, timedelta(minutes=5), timedelta(minutes=2))
    found = Dispatcher(
        window,
        ownership.owned,
        runs,
        EventPublisher(),
        times,
        lambda shard, head: wanted.append((shard, head)),
    )
    yield found
    found.close()


def due_entries(number: int, spec: Spec = SPEC, shard: int = 3) -> list[Entry]:
    due = utcnow() - timedelta(milliseconds=2)  # times of the window are rounded up, and Redis' clock down
    return [entry_for(execution_id(uuid4(), due, "schedule", shard), due, spec) for _ in range(number)]


def drain(queue: Any) -> list[Any]:
    found = []
    with connect() as connection, connection.channel() as channel:
        bound = queue.bind(channel)
        while (message := bound.get(no_ack=True)) is not None:
            found.append(message)
    return found


def sent_runs() -> list[UUID]:
    bodies = [json.loads(message.body)[1] for message in drain(work_queue(RUNS))]
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


def test_a_beat_that_stalled_for_a_lease_publishes_nothing_of_what_it_had_popped(
    dispatcher: Dispatcher, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    send_one(dispatcher, window)
    sent_runs()
    entries = due_entries(3)
    window.add(entries, {SPEC.id: SPEC.canonical})
    readings = iter([0.0])
    monkeypatch.setattr(dispatching, "monotonic", lambda: next(readings, LEASE.total_seconds()))
    dispatcher.tick()
    assert sent_runs() == []
    assert places(window, entries) == [(True, False)] * 3
    monkeypatch.undo()
    tick_until_sent(dispatcher, window, entries, 3)
    assert sorted(sent_runs()) == sorted(entry.execution_id for entry in entries)


def narrow_queue(name: str) -> Queue:
    """A work queue with room for one run: RabbitMQ refuses the others."""
    room = {"x-max-length": 1, "x-overflow": "reject-publish"}
    return Queue(name, Exchange(name, type="direct"), routing_key=name, queue_arguments=room)


def test_what_is_refused_stays_in_flight_and_goes_out_after_its_lease(
    dispatcher: Dispatcher, window: Window
) -> None:
    with connect() as connection, connection.channel() as channel:
        declare(narrow_queue(RUNS), channel)
    entries = due_entries(3)
    window.add(entries, {SPEC.id: SPEC.canonical})
    dispatcher.tick()
    assert sorted(places(window, entries)) == [(False, True), (True, False), (True, False)]
    assert len(queued_events()) == 1
    dispatcher.tick()
    assert len(sent_runs()) == 1
    for left in (1, 0):
        tick_until_sent(dispatcher, window, entries, len(entries) - left)
        assert len(sent_runs()) == 1
    assert places(window, entries) == [(False, True)] * 3


def tick_until_sent(dispatcher: Dispatcher, window: Window, entries: Sequence[Entry], number: int) -> None:
    """A lease has to end before a run goes out again."""
    deadline = monotonic() + 15
    while sum(sent for _, sent in places(window, entries)) < number:
        assert monotonic() < deadline
        time.sleep(dispatcher.tick())


def test_runs_for_a_queue_that_has_gone_stay_in_flight_and_go_out_once_it_is_made_anew(
    dispatcher: Dispatcher, window: Window
) -> None:
    send_one(dispatcher, window)
    delete_queues()
    entries = due_entries(2)
    window.add(entries, {SPEC.id: SPEC.canonical})
    dispatcher.tick()
    assert places(window, entries) == [(True, False)] * 2
    tick_until_sent(dispatcher, window, entries, 2)
    assert sorted(sent_runs()) == sorted(entry.execution_id for entry in entries)


def send_one(dispatcher: Dispatcher, window: Window) -> None:
    """So that the publisher is connected and has declared its queue."""
    entries = due_entries(1)
    window.add(entries, {SPEC.id: SPEC.canonical})
    dispatcher.tick()
    assert places(window, entries) == [(False, True)]


@pytest.fixture
def rabbitmq(settings: Any) -> Iterator[TcpProxy]:
    """A proxy before RabbitMQ, through which everything goes."""
    with proxy_before(settings.BROKER_URL) as (proxy, url):
        settings.BROKER_URL = url
        yield proxy


def test_while_the_broker_is_away_nothing_is_popped(
    rabbitmq: TcpProxy, dispatcher: Dispatcher, window: Window
) -> None:
    send_one(dispatcher, window)
    entries = due_entries(2)
    window.add(entries, {SPEC.id: SPEC.canonical})
    rabbitmq.go_away()
    assert dispatcher.tick() == dispatching.UNAVAILABLE_S
    assert places(window, entries) == [(False, False)] * 2
    rabbitmq.come_back()
    tick_until_sent(dispatcher, window, entries, 2)


@pytest.mark.parametrize("kept", [None, b"", b"{", b"[]", b'"a"', b"\xff"])
def test_a_run_whose_spec_is_missing_or_spoilt_waits_in_flight_until_it_is_brought(
    dispatcher: Dispatcher, window: Window, wanted: list[tuple[int, bytes]], kept: bytes | None
) -> None:
    entries = due_entries(1)
    window.add(entries, {} if kept is None else {SPEC.id: kept})
    dispatcher.tick()
    assert wanted == [(3, spec_head(SPEC.id))]
    assert places(window, entries) == [(True, False)]
    window.put({}, {3: {spec_head(SPEC.id): SPEC.canonical}})
    tick_until_sent(dispatcher, window, entries, 1)
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


def test_a_tick_takes_no_more_than_it_can_publish_within_a_lease(
    dispatcher: Dispatcher, window: Window, ownership: Ownership
) -> None:
    shards = ownership.owned()
    share = dispatching.MOST_A_TICK // len(shards)
    entries = [entry for shard in shards for entry in due_entries(share + 1, shard=shard)]
    window.add(entries, {SPEC.id: SPEC.canonical})
    assert dispatcher.tick() == 0.0
    left = window.pop(shards, timedelta(minutes=1), len(entries))
    assert [len(due.runs) for due in left] == [1] * len(shards)


def test_a_thousand_runs_cost_three_round_trips_and_one_event(
    settings: Any, ownership: Ownership, runs: RunPublisher, window: Window
) -> None:
    """Of 16 shards and a thousand jobs; two round trips where their RunSpecs are known."""
    store = CountingStore(settings.REDIS_URL, settings.PUNCTUAL_NAMESPACE)
    events = EventPublisher()
    times = DispatchTimes(timedelta(seconds=30), timedelta(minutes=5), timedelta(minutes=2))
    dispatcher = Dispatcher(Window(store), ownership.owned, runs, events, times, lambda *_: None)
    specs = [replace(SPEC, command=str(n)) for n in range(1000)]
    for round_trips in (3, 2):
        entries = [due_entries(1, spec, n % 16)[0] for n, spec in enumerate(specs)]
        window.add(entries, {spec.id: spec.canonical for spec in specs})
        store.reset()
        assert dispatcher.tick() > 0
        assert store.round_trips == round_trips
        assert len(sent_runs()) == 1000
        assert [len(decode(message.body)) for message in drain(event_queue(RECORDER))] == [1000]
    dispatcher.close()
    store.close()


def test_while_more_is_due_a_batch_is_settled_when_the_next_is_written(
    dispatcher: Dispatcher, window: Window, ownership: Ownership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "MOST_A_TICK", len(ownership.owned()))
    first, second = ([due_entries(1, shard=shard)[0] for shard in ownership.owned()] for _ in range(2))
    window.add([*first, *second], {SPEC.id: SPEC.canonical})
    assert dispatcher.tick() == 0.0
    assert sorted(places(window, [*first, *second])) == [(False, False)] * 16 + [(True, False)] * 16
    assert dispatcher.tick() > 0.0
    assert places(window, [*first, *second]) == [(False, True)] * 32
    assert len(sent_runs()) == 32


def test_what_is_written_when_a_beat_ends_is_settled(
    dispatcher: Dispatcher, window: Window, ownership: Ownership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(dispatching, "MOST_A_TICK", len(ownership.owned()))
    entries = due_entries(2)
    window.add(entries, {SPEC.id: SPEC.canonical})
    assert dispatcher.tick() == 0.0
    dispatcher.close()
    assert sorted(places(window, entries)) == [(False, False), (False, True)]


def test_batches_of_a_connection_that_broke_go_out_after_their_leases(
    rabbitmq: TcpProxy, dispatcher: Dispatcher, window: Window, ownership: Ownership, monkeypatch: Any
) -> None:
    send_one(dispatcher, window)
    monkeypatch.setattr(dispatching, "MOST_A_TICK", len(ownership.owned()))
    entries = due_entries(3)
    window.add(entries, {SPEC.id: SPEC.canonical})
    assert dispatcher.tick() == 0.0
    rabbitmq.cut()
    assert dispatcher.tick() == dispatching.UNAVAILABLE_S
    tick_until_sent(dispatcher, window, entries, 3)
    assert {entry.execution_id for entry in entries} <= set(sent_runs())
