"""Publishing and consuming over the real brokers: RabbitMQ and kombu's Redis transport."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.db import connection, transaction
from django.db.utils import DataError, IntegrityError
from redis import Redis

from executions.auditor import auditor
from executions.bus import consuming
from executions.bus.connection import BusUnavailable, broker_errors, connect
from executions.bus.consuming import BatchConsumer, Handle
from executions.bus.dead_queue import dead_queue
from executions.bus.publishing import DECLARE_AGAIN_S, EventPublisher
from executions.bus.topology import (
    AUDITOR,
    HEARTBEAT_S,
    RECORDER,
    event_queue,
)
from executions.events import Event, encode
from executions.models import Execution, ExecutionEvent
from executions.recorder import recorder
from scheduler_project.celery import app
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import InvalidValue, RetryableError
from tests.integration.broker_proxies import AmqpProxy
from tests.integration.executions.brokers import assert_waiting, purge, use_broker
from tests.integration.making import COMPLETED, STARTED, make_runs, said
from tests.integration.proxy import TcpProxy


@pytest.fixture
def publisher() -> Iterator[EventPublisher]:
    found = EventPublisher()
    yield found
    found.close()


@pytest.fixture
def consume() -> Iterator[Callable[..., BatchConsumer]]:
    made: list[BatchConsumer] = []

    def make(build: Callable[[], BatchConsumer]) -> BatchConsumer:
        made.append(build())
        return made[-1]

    yield make
    for consumer in made:
        consumer.close()


@pytest.fixture(autouse=True)
def short_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consuming, "IDLE_S", 0.2)


def run_until(
    consumer: BatchConsumer,
    reached: Callable[[], bool],
    work: Callable[[BatchConsumer], object] | None = None,
) -> None:
    deadline = monotonic() + 15
    while not reached():
        assert monotonic() < deadline
        (work or BatchConsumer.run_once)(consumer)


def assert_empty(queue: str) -> None:
    """Nothing is left, nor has come back from a consumer that ended."""
    with connect() as connection, connection.channel() as channel:
        assert event_queue(queue).bind(channel).get() is None


def buried() -> list[tuple[str, str, str]]:
    """What the dead-letter queue holds: body, queue, reason."""
    with dead_queue(100) as found:
        return [(letter.text, letter.queue, letter.reason) for letter in found.letters]


# Consuming


def has(batches: list[list[Event]], number: int) -> bool:
    return sum(map(len, batches)) == number


def test_events_come_in_batches_to_both_queues(
    broker: str, publisher: EventPublisher, consume: Callable[..., BatchConsumer]
) -> None:
    batches: dict[str, list[list[Event]]] = {RECORDER: [], AUDITOR: []}
    events = [said(STARTED, uuid4()) for _ in range(600)]
    for event in events:
        publisher.publish(encode([event]))
    for queue, seen in batches.items():
        consumer = consume(partial(BatchConsumer, queue, seen.append))
        run_until(consumer, partial(has, seen, 600))
        assert [event for batch in seen for event in batch] == events
        assert len(seen) < 60
        assert max(map(len, seen)) <= 500
        consumer.close()
    assert_empty(RECORDER)
    assert_empty(AUDITOR)


@pytest.mark.parametrize("poison", [b"nonsense", b"[" * 50_000, b"\xff", b'{"events": [{"type": "JOB_X"}]}'])
def test_what_cannot_be_read_is_buried_and_stops_nobody(
    broker: str, publisher: EventPublisher, consume: Callable[..., BatchConsumer], poison: bytes
) -> None:
    seen: list[Event] = []
    first, last = said(STARTED, uuid4()), said(STARTED, uuid4())
    publisher.publish(encode([first]))
    publisher.publish(poison)
    publisher.publish(encode([last]))
    consumer = consume(lambda: BatchConsumer(RECORDER, seen.extend))
    run_until(consumer, lambda: len(seen) == 2)
    assert seen == [first, last]
    ((body, queue, reason),) = buried()
    assert body == poison.decode(errors="replace")
    assert queue == RECORDER
    assert reason.startswith("not a message of events")


def refuse(error: Exception, poison: Event, seen: list[Event]) -> Handle:
    """A handler of events that cannot apply ``poison``."""

    def handle(batch: list[Event]) -> None:
        if poison in batch:
            raise error
        seen.extend(batch)

    return handle


def work(consumer: BatchConsumer) -> None:
    """One round, as the loop around it does it."""
    with suppress(RetryableError):
        consumer.run_once()


@pytest.mark.parametrize("error", [DataError("too long"), IntegrityError("no such row"), InvalidValue("?")])
def test_what_has_wrong_values_is_buried_alone_and_at_once(
    broker: str, publisher: EventPublisher, consume: Callable[..., BatchConsumer], error: Exception
) -> None:
    seen: list[Event] = []
    events = [said(STARTED, uuid4()) for _ in range(5)]
    for event in events:
        publisher.publish(encode([event]))
    consumer = consume(lambda: BatchConsumer(RECORDER, refuse(error, events[2], seen)))
    run_until(consumer, lambda: len(seen) == 4)
    assert seen == [event for event in events if event is not events[2]]
    ((_, queue, reason),) = buried()
    assert (queue, reason) == (RECORDER, f"{type(error).__name__}: {error}")
    consumer.close()
    assert_empty(RECORDER)


def test_what_fails_for_a_reason_that_may_pass_is_tried_six_times_and_stops_nobody(
    broker: str, publisher: EventPublisher, consume: Callable[..., BatchConsumer]
) -> None:
    seen: list[Event] = []
    first, poison, last = (said(STARTED, uuid4()) for _ in range(3))
    for event in (first, poison, last):
        publisher.publish(encode([event]))
    consumer = consume(lambda: BatchConsumer(RECORDER, refuse(KeyError("a fault of ours"), poison, seen)))
    run_until(consumer, lambda: len(seen) == 2, work)
    rounds = 1
    while not buried():
        work(consumer)
        rounds += 1
        assert rounds <= 6
    assert rounds == 6
    assert seen == [first, last]
    consumer.close()
    assert_empty(RECORDER)


def test_logs_name_the_fault_and_the_run_and_no_value_of_what_was_refused(
    broker: str,
    publisher: EventPublisher,
    consume: Callable[..., BatchConsumer],
    caplog: pytest.LogCaptureFixture,
    db: None,
) -> None:
    """PostgreSQL's own error quotes the row, and a reader's the value."""
    event = said(STARTED, uuid4())

    def handle(_: list[Event]) -> None:
        with connection.cursor() as cursor:
            cursor.execute(
                "CREATE TEMPORARY TABLE IF NOT EXISTS kept (env text, n int CONSTRAINT kept_n CHECK (n > 0))"
            )
            with transaction.atomic():
                cursor.execute("INSERT INTO kept VALUES ('hunter2', 0)")

    publisher.publish(encode([event]))
    publisher.publish(b'{"events": [{"type": "hunter2"}]}')
    consumer = consume(lambda: BatchConsumer(RECORDER, handle))
    run_until(consumer, lambda: len(buried()) == 2, work)
    assert any("hunter2" in reason for _, _, reason in buried())
    formatter = logging.Formatter()
    told = [{**vars(record), "written": formatter.format(record)} for record in caplog.records]
    assert "hunter2" not in str(told)
    (refused,) = (fields for fields in told if fields["msg"] == "message_refused")
    assert (refused["error"], refused["constraint"]) == ("IntegrityError", "kept_n")
    assert refused["executions"] == str(event.execution_id)
    assert "test_bus:" in refused["places"]
    graves = [fields["error"] for fields in told if fields["msg"] == "message_buried"]
    assert sorted(graves) == ["IntegrityError", "InvalidValue"]


def test_a_dead_letter_is_replayed_to_the_queue_that_it_came_from(
    broker: str, publisher: EventPublisher, consume: Callable[..., BatchConsumer]
) -> None:
    refused: list[Event] = []
    seen: list[Event] = []
    event = said(STARTED, uuid4())
    publisher.publish(encode([event]))
    first = consume(lambda: BatchConsumer(AUDITOR, refuse(DataError("too long"), event, refused)))
    run_until(first, lambda: bool(buried()))
    first.close()
    with dead_queue(10) as found:
        for held in found.held:
            found.replay(held)
    run_until(consume(lambda: BatchConsumer(AUDITOR, seen.extend)), lambda: bool(seen))
    assert seen == [event]
    assert buried() == []


def test_a_batch_stays_in_hand_while_its_handler_cannot_work(
    broker: str, publisher: EventPublisher, consume: Callable[..., BatchConsumer]
) -> None:
    tried: list[list[Event]] = []
    event = said(STARTED, uuid4())
    publisher.publish(encode([event]))

    def handle(batch: list[Event]) -> None:
        tried.append(batch)
        if len(tried) < 3:
            raise RetryableError("away")

    consumer = consume(lambda: BatchConsumer(RECORDER, handle))
    for _ in range(2):
        with pytest.raises(RetryableError, match="away"):
            consumer.run_once()
    consumer.run_once()
    assert tried == [[event]] * 3
    consumer.close()
    assert_empty(RECORDER)


def test_what_is_in_hand_returns_to_the_queue_when_the_consumer_ends(
    broker: str, publisher: EventPublisher, consume: Callable[..., BatchConsumer]
) -> None:
    def away(batch: list[Event]) -> None:
        raise RetryableError("away")

    seen: list[Event] = []
    event = said(STARTED, uuid4())
    publisher.publish(encode([event]))
    first = consume(lambda: BatchConsumer(RECORDER, away))
    with pytest.raises(RetryableError):
        first.run_once()
    first.close()
    run_until(consume(lambda: BatchConsumer(RECORDER, seen.extend)), lambda: bool(seen))
    assert seen == [event]


def test_what_comes_while_a_connection_ends_is_not_taken_for_what_comes_over_the_next(
    broker: str, publisher: EventPublisher, consume: Callable[..., BatchConsumer]
) -> None:
    """It could not be acknowledged: its batch would be handled, and its connection given up, for ever."""
    events = [said(STARTED, uuid4()) for _ in range(20)]
    for event in events:
        publisher.publish(encode([event]))
    seen: list[Event] = []
    consumer = consume(lambda: BatchConsumer(RECORDER, seen.extend))
    consumer._connect()
    time.sleep(0.3)  # they have arrived, and nobody has read them
    consumer.close()
    run_until(consumer, lambda: len(seen) >= 20)
    assert sorted(event.execution_id for event in seen) == sorted(event.execution_id for event in events)
    consumer.close()
    assert_empty(RECORDER)


def test_a_connection_lives_while_its_batch_waits_for_the_database(
    rabbitmq: TcpProxy,
    publisher: EventPublisher,
    consume: Callable[..., BatchConsumer],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(consuming, "HEARTBEAT_S", 2)
    working: list[bool] = []
    connections: set[Any] = set()

    def handle(batch: list[Event]) -> None:
        if not working:
            raise RetryableError("away")

    publisher.publish(encode([said(STARTED, uuid4())]))
    consumer = consume(lambda: BatchConsumer(RECORDER, handle))
    until = monotonic() + 6.0
    while monotonic() < until:
        with suppress(RetryableError):
            consumer.run_once()
        connections.add(consumer._connection)
        time.sleep(0.5)
    assert len(connections) == 1
    working.append(True)
    consumer.run_once()
    consumer.close()
    assert_empty(RECORDER)


@pytest.mark.django_db(transaction=True)
def test_recorder_and_auditor_turn_events_into_rows(
    broker: str, publisher: EventPublisher, consume: Callable[..., BatchConsumer]
) -> None:
    ran = make_runs(50)
    started, completed = ([said(kind, run, worker="w") for run in ran] for kind in (STARTED, COMPLETED))
    for events in (started, completed, started):
        publisher.publish(encode(events))
    publisher.publish(encode([said(STARTED, uuid4())]))
    run_until(
        consume(recorder),
        lambda: Execution.objects.filter(state="Completed Normally").count() == 50,
    )
    run_until(consume(auditor), lambda: ExecutionEvent.objects.filter(execution_id__in=ran).count() == 100)


# Publishing events


def test_an_event_reaches_a_queue_that_was_deleted_under_its_publisher(
    rabbitmq: TcpProxy, publisher: EventPublisher
) -> None:
    body = encode([said(STARTED, uuid4())])
    publisher.publish(body)
    purge()
    wait_for_declaration(publisher)
    publisher.publish(body)
    assert_waiting(1, RECORDER)
    assert_waiting(1, AUDITOR)


def test_an_event_reaches_its_queues_after_redis_has_lost_their_bindings(
    settings: Any, publisher: EventPublisher
) -> None:
    use_broker(settings, settings.REDIS_URL)
    body = encode([said(STARTED, uuid4())])
    publisher.publish(body)
    Redis.from_url(settings.REDIS_URL).flushdb()
    wait_for_declaration(publisher)
    publisher.publish(body)
    assert_waiting(1, RECORDER)
    assert_waiting(1, AUDITOR)
    broker_errors.cache_clear()


def wait_for_declaration(publisher: EventPublisher) -> None:
    """Queues are declared again when their last declaration is a second old."""
    due = publisher.declared_at + DECLARE_AGAIN_S
    while monotonic() < due:
        time.sleep(0.02)


def test_a_connection_that_is_cut_is_said_to_be_and_the_next_one_works(
    rabbitmq: TcpProxy, publisher: EventPublisher
) -> None:
    body = encode([said(STARTED, uuid4())])
    publisher.publish(body)
    rabbitmq.cut()
    with pytest.raises(BusUnavailable, match="BROKER_URL"):
        publisher.publish(body)
    publisher.publish(body)
    assert_waiting(2, RECORDER)


def test_a_consumer_whose_connection_is_cut_gets_everything_from_the_next(
    rabbitmq: TcpProxy, publisher: EventPublisher, consume: Callable[..., BatchConsumer]
) -> None:
    seen: list[Event] = []
    consumer = consume(lambda: BatchConsumer(RECORDER, seen.extend))
    first, second = said(STARTED, uuid4()), said(COMPLETED, uuid4())
    publisher.publish(encode([first]))
    run_until(consumer, lambda: bool(seen))
    rabbitmq.cut()
    with pytest.raises(BusUnavailable):
        consumer.run_once()
    publisher.close()
    publisher.publish(encode([second]))
    run_until(consumer, lambda: second in seen)
    assert {event.id for event in seen} == {first.id, second.id}  # an acknowledgement may be cut off too


@pytest.mark.parametrize("hand", [False, True], ids=["idle", "after a batch"])
def test_a_consumer_whose_connection_says_nothing_any_more_finds_out(
    settings: Any,
    publisher: EventPublisher,
    consume: Callable[..., BatchConsumer],
    monkeypatch: pytest.MonkeyPatch,
    hand: bool,
) -> None:
    monkeypatch.setattr(consuming, "ASK_S", 0.1)
    address = urlsplit(settings.BROKER_URL)
    proxy = AmqpProxy(address.hostname or "", address.port or 0)
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = {"read_timeout": 0.5, "write_timeout": 0.5}
    settings.BROKER_URL = settings.BROKER_URL.replace(f":{address.port}", f":{proxy.port}", 1)
    seen: list[Event] = []
    consumer = consume(lambda: BatchConsumer(RECORDER, seen.extend))
    consumer.run_once()
    if hand:
        publisher.publish(encode([said(STARTED, uuid4())]))
        run_until(consumer, lambda: bool(seen))
    proxy.hold()
    with pytest.raises(BusUnavailable):
        for _ in range(3):
            consumer.run_once()
    proxy.let_go()
    event = said(COMPLETED, uuid4())
    publisher.close()
    publisher.publish(encode([event]))
    run_until(consumer, lambda: event in seen)
    consumer.close()
    proxy.close()


def test_a_consumer_whose_queue_is_gone_makes_it_anew(
    rabbitmq: TcpProxy, consume: Callable[..., BatchConsumer], publisher: EventPublisher
) -> None:
    seen: list[Event] = []
    consumer = consume(lambda: BatchConsumer(RECORDER, seen.extend))
    consumer.run_once()
    purge()
    with pytest.raises(BusUnavailable):
        for _ in range(10):
            consumer.run_once()
    consumer.run_once()
    publisher.publish(encode([said(STARTED, uuid4())]))
    run_until(consumer, lambda: bool(seen))


def test_a_worker_s_connection_is_given_up_soon_after_it_has_frozen(settings: Any) -> None:
    """RabbitMQ hands what it holds to another after two to three heartbeats, as both sides agree on them."""
    connection = app.connection_for_read(url=settings.BROKER_URL, heartbeat=app.conf.broker_heartbeat)
    with connection.ensure_connection():
        assert connection.get_heartbeat_interval() == HEARTBEAT_S
