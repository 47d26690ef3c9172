"""Publishing runs: one contract for both ways to a broker, and what only RabbitMQ can do to a batch."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from kombu import Exchange, Queue

from executions.bus.batches import CONFIRM_TIMEOUT_S, BrokerBlocked, KombuWay, RunMessage, TaskHeaders
from executions.bus.connection import BusUnavailable, connect
from executions.bus.publishing import RunPublisher
from executions.bus.topology import declare, work_queue
from scheduler_project.kernel.clock import monotonic
from tests.integration.broker_proxies import AmqpProxy, TlsProxy
from tests.integration.executions.brokers import OTHER_WORK, WORK, assert_waiting, purge, use_broker

BIG = 300_000  # bytes: more than RabbitMQ takes in one frame


@pytest.fixture
def runs() -> Iterator[RunPublisher]:
    found = RunPublisher("executions.run", "test")
    yield found
    found.close()


def messages(number: int, queue: str = WORK, padding: int = 0) -> list[RunMessage]:
    return [
        RunMessage(f"{n}:1", b'[[],{"execution":"%d","attempt":1,"x":"%b"},{}]' % (n, b"x" * padding), queue)
        for n in range(number)
    ]


def taken(queue: str, number: int) -> list[Any]:
    """The first messages of a queue; no more than are there."""
    found: list[Any] = []
    with connect() as connection, connection.channel() as channel:
        bound = work_queue(queue).bind(channel)
        while len(found) < number and (message := bound.get(no_ack=True)) is not None:
            found.append(message)
    return found


# The contract


def test_every_message_of_a_large_batch_is_confirmed(broker: str, runs: RunPublisher) -> None:
    for size in (1, 2200, 0):
        assert runs.publish(messages(size)) == set()
    assert_waiting(2201, WORK)


def test_a_batch_may_be_written_before_the_fate_of_the_last_is_asked_for(
    broker: str, runs: RunPublisher
) -> None:
    runs.prepare()
    sendings = [runs.send(messages(size)) for size in (300, 1100, 5)]
    assert [sending.refused() for sending in reversed(sendings)] == [set()] * 3
    assert_waiting(1405, WORK)


def test_each_message_goes_to_its_queue_whole_and_in_order(broker: str, runs: RunPublisher) -> None:
    batch = [*messages(12), *messages(3, OTHER_WORK), *messages(2, padding=BIG)]
    assert runs.publish(batch) == set()
    for queue in (WORK, OTHER_WORK):
        wanted = [message for message in batch if message.queue == queue]
        found = taken(queue, len(batch))
        assert [body_of(message) for message in found] == [message.body for message in wanted]
        assert [message.headers["id"] for message in found] == [message.task_id for message in wanted]


def test_a_message_is_a_celery_task_as_kombu_would_have_sent_it(broker: str, runs: RunPublisher) -> None:
    (one,) = messages(1)
    runs.publish([one])
    with connect() as connection, connection.channel() as channel:
        KombuWay(channel, TaskHeaders("executions.run", "test")).write([one])
    ours, kombus = taken(WORK, 2)
    assert (ours.headers["task"], ours.headers["id"]) == ("executions.run", "0:1")
    assert json.loads(ours.body)[1] == {"execution": "0", "attempt": 1, "x": ""}
    for part in ("body", "headers", "content_type", "content_encoding"):
        assert getattr(ours, part) == getattr(kombus, part)
    assert properties_of(ours) == properties_of(kombus)


def properties_of(message: Any) -> dict[str, Any]:
    """But for what kombu numbers anew for each message on Redis."""
    numbered = {"delivery_tag", "delivery_info"}
    return {name: value for name, value in message.properties.items() if name not in numbered}


def body_of(message: Any) -> bytes:
    """RabbitMQ's come as text, Redis' as bytes."""
    return message.body.encode() if isinstance(message.body, str) else bytes(message.body)


# RabbitMQ: what is refused


def test_only_the_runs_for_a_queue_that_has_gone_come_back_and_then_it_is_made_anew(
    rabbitmq: AmqpProxy, runs: RunPublisher
) -> None:
    batch = [*messages(2), *[RunMessage(f"{n}:2", b"[]", OTHER_WORK) for n in range(3)], *messages(2)]
    assert runs.publish(batch) == set()
    with connect() as connection, connection.channel() as channel:
        channel.queue_delete(OTHER_WORK)  # type: ignore[attr-defined]
    assert runs.publish(batch) == {2, 3, 4}
    assert runs.publish(batch) == set()
    assert rabbitmq.connections == 1 + 2  # purging, and the one that deleted, had their own
    assert_waiting(12, WORK)
    assert_waiting(3, OTHER_WORK)


def test_only_what_a_full_queue_refuses_is_told_and_another_queue_takes_all(
    rabbitmq: AmqpProxy, runs: RunPublisher
) -> None:
    """It is there with arguments of somebody else, too: that is no reason to send nothing."""
    room = {"x-max-length": 5, "x-overflow": "reject-publish"}
    full = Queue(WORK, Exchange(WORK, type="direct"), routing_key=WORK, queue_arguments=room)
    with connect() as connection, connection.channel() as channel:
        declare(full, channel)
    refused = runs.publish([*messages(20), *messages(20, OTHER_WORK)])
    assert refused == set(range(5, 20))
    assert runs.publish(messages(3)) == {0, 1, 2}
    assert_waiting(20, OTHER_WORK)


# RabbitMQ: what becomes of the connection


def test_a_connection_that_is_cut_in_the_middle_of_a_batch(rabbitmq: AmqpProxy, runs: RunPublisher) -> None:
    assert runs.publish(messages(1)) == set()
    first = runs.send(messages(10))
    rabbitmq.cut_at = rabbitmq.written + 700_000
    with pytest.raises(BusUnavailable, match="BROKER_URL"):
        runs.publish(messages(4000, padding=500))
    runs.prepare()
    with pytest.raises(BusUnavailable, match="10 runs"):  # asked for after another connection was made
        first.refused()
    assert runs.publish(messages(10, OTHER_WORK)) == set()
    assert_waiting(10, OTHER_WORK)
    for message in taken(WORK, 5000):
        json.loads(message.body)  # none of them is half a message


def test_a_broker_that_is_away_is_said_to_be_and_the_next_connection_works(
    rabbitmq: AmqpProxy, runs: RunPublisher
) -> None:
    assert runs.publish(messages(3)) == set()
    rabbitmq.cut()
    with pytest.raises(BusUnavailable, match="BROKER_URL"):
        prepare_until_told(runs)
    rabbitmq.go_away()
    with pytest.raises(BusUnavailable):
        runs.prepare()
    rabbitmq.come_back()
    runs.prepare()
    assert runs.publish(messages(3)) == set()


def test_a_message_that_cannot_be_written_spoils_no_later_batch(
    rabbitmq: AmqpProxy, runs: RunPublisher
) -> None:
    runs.publish(messages(1))
    with pytest.raises(UnicodeEncodeError):
        runs.publish([*messages(1500), RunMessage("\ud800:1", b"[]", WORK)])
    began = monotonic()
    assert runs.publish(messages(3)) == set()
    assert monotonic() - began < CONFIRM_TIMEOUT_S / 2


def prepare_until_told(runs: RunPublisher) -> None:
    """What the broker has said takes a moment to arrive."""
    deadline = monotonic() + 10
    while monotonic() < deadline:
        runs.prepare()
        time.sleep(0.01)


def all_written(proxy: AmqpProxy) -> int:
    """The bytes that the proxy has seen, once no more come."""
    seen = -1
    while seen != proxy.written:
        seen = proxy.written
        time.sleep(0.2)
    return seen


def test_while_the_broker_blocks_the_connection_nothing_is_written_and_what_it_has_is_confirmed_later(
    rabbitmq: AmqpProxy, runs: RunPublisher
) -> None:
    assert runs.publish(messages(1)) == set()
    connections = rabbitmq.connections
    rabbitmq.hold()
    taken_before = runs.send(messages(1500))
    rabbitmq.say_blocked()
    with pytest.raises(BrokerBlocked):
        prepare_until_told(runs)
    with pytest.raises(BrokerBlocked, match="1500 of 1500"):
        taken_before.refused()
    written, until = all_written(rabbitmq), []

    def unblock() -> None:
        until.append(rabbitmq.written)
        rabbitmq.say_unblocked()

    threading.Timer(0.3, unblock).start()
    later = runs.send(messages(2))
    assert until == [written]
    rabbitmq.let_go()
    assert (taken_before.refused(), later.refused()) == (set(), set())
    assert rabbitmq.connections == connections
    assert_waiting(1503, WORK)


def test_an_idle_connection_is_kept_alive_by_heartbeats(
    rabbitmq: AmqpProxy, runs: RunPublisher, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("executions.bus.publishing.HEARTBEAT_S", 1)
    runs.prepare()
    connections, deadline = rabbitmq.connections, monotonic() + 4  # RabbitMQ hangs up after two
    while monotonic() < deadline:
        runs.prepare()
        time.sleep(0.1)
    assert rabbitmq.connections == connections
    assert runs.publish(messages(1)) == set()


def test_runs_go_out_over_tls(settings: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    purge()
    address = urlsplit(settings.BROKER_URL.replace("pyamqp", "amqp"))
    proxy = TlsProxy(address.hostname or "", address.port or 5672, tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", str(proxy.authority))
    plain = settings.BROKER_URL
    url = plain.replace("pyamqp://", "amqps://").replace(f":{address.port or 5672}", f":{proxy.port}")
    use_broker(settings, url)
    runs = RunPublisher("executions.run", "test")
    try:
        runs.prepare()
        assert runs.publish([*messages(2500, padding=1000), *messages(1, padding=BIG)]) == set()
    finally:
        runs.close()
        use_broker(settings, plain)
        proxy.close()
    assert_waiting(2501, WORK)


# What it costs


def test_a_thousand_runs_are_one_write(rabbitmq: AmqpProxy, runs: RunPublisher) -> None:
    runs.publish(messages(1))
    writes: list[int] = []
    transport = connection_of(runs).transport
    write = transport.write

    def counted(data: Any) -> None:
        writes.append(len(data))
        write(data)

    transport.write = counted
    assert runs.publish(messages(3000)) == set()
    assert len(writes) == 3
    writes.clear()
    assert runs.publish(messages(30, padding=BIG)) == set()
    assert len(writes) == 3  # of about four megabytes
    assert max(writes) < 5_000_000


def connection_of(runs: RunPublisher) -> Any:
    """py-amqp's own."""
    assert runs._connection is not None
    return runs._connection.connection
