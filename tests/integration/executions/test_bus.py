"""Publishing and consuming over the real brokers: RabbitMQ and kombu's Redis transport."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any
from urllib.parse import urlsplit
from uuid import UUID, uuid4

import pytest
from django.db.utils import OperationalError

from executions import auditor as auditing
from executions import recorder as recording
from executions.auditor import auditor
from executions.bus import consuming
from executions.bus.connection import BusUnavailable, broker_errors, connect
from executions.bus.consuming import BatchConsumer
from executions.bus.depth import messages_waiting
from executions.bus.publishing import EventPublisher, RunMessage, RunPublisher
from executions.bus.topology import (
    AUDITOR,
    DEAD,
    RECORDER,
    dead_letter_queue,
    event_queue,
    transport_options,
    work_queue,
)
from executions.database import DatabaseUnavailable
from executions.events import Event, encode
from executions.models import Execution, ExecutionEvent
from executions.recorder import recorder
from executions.store import Store
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import RetryableError
from tests.integration.making import COMPLETED, STARTED, make_run, make_runs, said
from tests.integration.proxy import TcpProxy

WORK = "runs-of-a-test"


def use_broker(settings: Any, url: str) -> None:
    settings.BROKER_URL = url
    settings.CELERY_BROKER_TRANSPORT_OPTIONS = transport_options(url, settings.PUNCTUAL_NAMESPACE)
    broker_errors.cache_clear()


def purge() -> None:
    with connect() as connection, connection.channel() as channel:
        for queue in (RECORDER, AUDITOR, DEAD, WORK):
            if connection.transport.driver_type == "amqp":
                channel.queue_delete(queue)  # type: ignore[attr-defined]
            else:
                channel.queue_purge(queue)  # type: ignore[attr-defined]


@pytest.fixture(params=["rabbitmq", "redis"])
def broker(request: pytest.FixtureRequest, settings: Any, store: Store) -> Iterator[str]:
    if request.param == "redis":
        use_broker(settings, settings.REDIS_URL)
    purge()
    yield str(request.param)
    broker_errors.cache_clear()


@pytest.fixture
def rabbitmq(settings: Any) -> Iterator[TcpProxy]:
    """A proxy before RabbitMQ, through which everything goes."""
    address = urlsplit(settings.BROKER_URL.replace("pyamqp", "amqp"))
    proxy = TcpProxy(address.hostname or "", address.port or 5672)
    use_broker(settings, settings.BROKER_URL.replace(f":{address.port or 5672}", f":{proxy.port}"))
    purge()
    yield proxy
    proxy.close()
    broker_errors.cache_clear()


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


@pytest.fixture
def runs() -> Iterator[RunPublisher]:
    found = RunPublisher("executions.run", WORK, "test")
    yield found
    found.close()


@pytest.fixture(autouse=True)
def short_idle(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(consuming, "IDLE_S", 0.2)


def run_until(consumer: BatchConsumer, reached: Callable[[], bool]) -> None:
    deadline = monotonic() + 15
    while not reached():
        assert monotonic() < deadline
        consumer.run_once()


def assert_waiting(number: int, *queues: str) -> None:
    """A quorum queue counts with a delay."""
    deadline = monotonic() + 10
    while (found := messages_waiting(queues)) != number:
        assert monotonic() < deadline, found
        time.sleep(0.05)


def assert_empty(queue: str) -> None:
    """Nothing is left, nor has come back from a consumer that ended."""
    with connect() as connection, connection.channel() as channel:
        assert event_queue(queue).bind(channel).get() is None


def buried() -> list[tuple[bytes, str]]:
    """What the dead-letter queue holds, with the reasons."""
    found = []
    with connect() as connection, connection.channel() as channel:
        queue = dead_letter_queue().bind(channel)
        while (message := queue.get(accept=["json"])) is not None:
            body: Any = message.body
            found.append((body if isinstance(body, bytes) else body.encode(), message.headers["reason"]))
            message.ack()
    return found


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
    ((body, reason),) = buried()
    assert (body if isinstance(body, bytes) else body.encode("utf-8", "surrogateescape")).startswith(
        poison[:8]
    )
    assert reason.startswith(f"{RECORDER}: ")


def test_what_cannot_be_applied_is_buried_alone(
    broker: str, publisher: EventPublisher, consume: Callable[..., BatchConsumer]
) -> None:
    seen: list[UUID] = []
    events = [said(STARTED, uuid4()) for _ in range(5)]
    for event in events:
        publisher.publish(encode([event]))

    def handle(batch: list[Event]) -> None:
        if events[2] in batch:
            raise ValueError("cannot be applied")
        seen.extend(event.execution_id for event in batch)

    consumer = consume(lambda: BatchConsumer(RECORDER, handle))
    run_until(consumer, lambda: len(seen) == 4)
    assert seen == [event.execution_id for event in events if event is not events[2]]
    ((_, reason),) = buried()
    assert reason == f"{RECORDER}: ValueError: cannot be applied"
    assert_empty(RECORDER)


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


@pytest.mark.django_db(transaction=True)
def test_recorder_and_auditor_turn_events_into_rows(
    broker: str, publisher: EventPublisher, consume: Callable[..., BatchConsumer]
) -> None:
    ran = make_runs(50)
    for kind in (STARTED, COMPLETED, STARTED):
        publisher.publish(encode([said(kind, run, worker="w") for run in ran]))
    publisher.publish(encode([said(STARTED, uuid4())]))
    run_until(
        consume(recorder),
        lambda: Execution.objects.filter(state="Completed Normally").count() == 50,
    )
    run_until(consume(auditor), lambda: ExecutionEvent.objects.filter(execution_id__in=ran).count() == 100)


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("service", [recording, auditing])
def test_a_database_that_is_away_costs_no_event(
    broker: str,
    publisher: EventPublisher,
    consume: Callable[..., BatchConsumer],
    monkeypatch: pytest.MonkeyPatch,
    service: Any,
) -> None:
    def away(*_: Any, **__: Any) -> None:
        raise OperationalError("the server closed the connection")

    run = make_run()
    publisher.publish(encode([said(COMPLETED, run)]))
    consumer = consume(recorder if service is recording else auditor)
    with monkeypatch.context() as patch:
        patch.setattr(service, "record" if service is recording else "append_history", away)
        for _ in range(2):
            with pytest.raises(DatabaseUnavailable):
                consumer.run_once()
    consumer.run_once()
    found = (
        Execution.objects.filter(state="Completed Normally")
        if service is recording
        else ExecutionEvent.objects
    )
    assert found.count() == 1


# Publishing runs


def messages(number: int) -> list[RunMessage]:
    return [RunMessage(f"{n}:1", {"execution": str(n), "attempt": 1}) for n in range(number)]


def test_every_message_of_a_large_batch_is_confirmed(broker: str, runs: RunPublisher) -> None:
    for size in (1, 4000, 1500, 0):
        assert runs.publish(messages(size)) == set()
    assert_waiting(5501, WORK)


def test_a_message_is_a_celery_task(broker: str, runs: RunPublisher) -> None:
    runs.publish(messages(1))
    with connect() as connection, connection.channel() as channel:
        message: Any = work_queue(WORK).bind(channel).get()
        message.ack()
    assert (message.headers["task"], message.headers["id"]) == ("executions.run", "0:1")
    assert json.loads(message.body)[1] == {"execution": "0", "attempt": 1}


def test_runs_for_a_queue_that_has_gone_are_refused_and_then_it_is_made_anew(
    rabbitmq: TcpProxy, runs: RunPublisher
) -> None:
    assert runs.publish(messages(3)) == set()
    purge()
    assert runs.publish(messages(5)) == {0, 1, 2, 3, 4}
    assert runs.publish(messages(5)) == set()
    assert_waiting(5, WORK)


def test_a_connection_that_is_cut_is_said_to_be_and_the_next_one_works(
    rabbitmq: TcpProxy, runs: RunPublisher, publisher: EventPublisher
) -> None:
    body = encode([said(STARTED, uuid4())])
    assert runs.publish(messages(3)) == set()
    publisher.publish(body)
    rabbitmq.cut()
    with pytest.raises(BusUnavailable, match="BROKER_URL"):
        runs.publish(messages(3))
    with pytest.raises(BusUnavailable, match="BROKER_URL"):
        publisher.publish(body)
    rabbitmq.go_away()
    with pytest.raises(BusUnavailable):
        runs.publish(messages(3))
    rabbitmq.come_back()
    assert runs.publish(messages(3)) == set()
    publisher.publish(body)
    assert_waiting(2, RECORDER)


def test_a_connection_that_is_cut_in_the_middle_of_a_batch(rabbitmq: TcpProxy, runs: RunPublisher) -> None:
    assert runs.publish(messages(1)) == set()
    threading.Timer(0.1, rabbitmq.cut).start()
    with pytest.raises(BusUnavailable):
        runs.publish(messages(20_000))
    assert runs.publish(messages(10)) == set()


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
    run_until(consumer, lambda: len(seen) == 2)
    assert seen == [first, second]
