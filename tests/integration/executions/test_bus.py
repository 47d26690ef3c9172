"""Publishing and consuming over the real brokers: RabbitMQ and kombu's Redis transport."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from io import StringIO
from typing import Any
from urllib.parse import urlsplit
from uuid import uuid4

import pytest
from django.core.management import call_command
from django.db.utils import DataError, IntegrityError
from redis import Redis

from executions.auditor import auditor
from executions.bus import consuming
from executions.bus.connection import BusUnavailable, broker_errors, connect
from executions.bus.consuming import BatchConsumer, Handle
from executions.bus.dead_letters import dead_letters
from executions.bus.depth import messages_waiting
from executions.bus.publishing import (
    DECLARE_AGAIN_S,
    ConfirmedPublisher,
    EventPublisher,
    RunMessage,
    RunPublisher,
)
from executions.bus.topology import (
    AUDITOR,
    DEAD,
    RECORDER,
    dead_letter_queue,
    event_queue,
    transport_options,
    work_queue,
)
from executions.events import Event, encode
from executions.models import Execution, ExecutionEvent
from executions.recorder import recorder
from executions.store import Store
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import InvalidValue, RetryableError
from scheduler_project.kernel.texts import control_character
from tests.integration.making import COMPLETED, STARTED, make_runs, said
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


def run_until(
    consumer: BatchConsumer,
    reached: Callable[[], bool],
    work: Callable[[BatchConsumer], object] | None = None,
) -> None:
    deadline = monotonic() + 15
    while not reached():
        assert monotonic() < deadline
        (work or BatchConsumer.run_once)(consumer)


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


def buried() -> list[tuple[str, str, str]]:
    """What the dead-letter queue holds: body, queue, reason."""
    with dead_letters(100) as letters:
        return [(letter.body, letter.queue, letter.reason) for letter in letters]


def test_a_dead_letter_that_is_listed_does_not_command_the_terminal(broker: str) -> None:
    target = dead_letter_queue()
    letters = ConfirmedPublisher(target)
    headers = {"queue": "\x1b[2J\u202e", "reason": "\x1b[31m", "buried_at": "\x07"}
    letters.send(b"\x1b]0;x", exchange=target.exchange.name, routing_key=target.routing_key, headers=headers)
    letters.close()
    listed = StringIO()
    call_command("dead_letters", stdout=listed)
    assert "1 dead letter;" in listed.getvalue()
    assert control_character(listed.getvalue().replace("\n", "")) == ""


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
    with dead_letters(10) as letters:
        for letter in letters:
            letter.replay()
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
    run_until(consumer, lambda: second in seen)
    assert {event.id for event in seen} == {first.id, second.id}  # an acknowledgement may be cut off too
