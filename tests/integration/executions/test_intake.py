"""Where a worker takes its runs from, over the real brokers."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import Any

import pytest
from kombu import Consumer

from executions.bus.connection import connect
from executions.bus.topology import RUNS, work_queue
from executions.engines import engine_queue
from executions.worker import intake as intakes
from executions.worker.intake import Intake
from executions.worker.room import Takes
from executions.worker.slots import Slots


def test_while_a_large_run_is_awaited_only_what_has_begun_is_taken(broker: str) -> None:
    """By turns: both, the queue of the engine, none, both again."""
    name, taken, takes = engine_queue("test"), [], [Takes.ANYTHING]
    with closing(connect()) as connection, connection.channel() as channel:

        def receive(body: str, message: Any) -> None:
            taken.append(body)
            message.ack()

        def taken_of(told: Takes) -> list[str]:
            """What is taken of a run of each queue, of those that came before and of those that come now."""
            takes[:] = [told]
            taken.clear()
            for sent in ("before", "after"):
                for queue in (name, RUNS):
                    producer.publish(f"{sent} {queue}", exchange="", routing_key=queue)
                intake.open()
                drain(connection)
            intake.close()
            return sorted(taken)

        producer = connection.Producer()
        consumer = Consumer(channel, [work_queue(RUNS)], callbacks=[receive])
        intake = Intake(consumer, [[RUNS]], lambda: takes[0], lambda: False, nothing)
        intake.add(name)
        of_engine, of_runs = [f"after {name}", f"before {name}"], [f"after {RUNS}", f"before {RUNS}"]
        assert taken_of(Takes.ANYTHING) == sorted(of_engine + of_runs)
        assert taken_of(Takes.BEGUN) == of_engine
        assert taken_of(Takes.NOTHING) == []
        assert taken_of(Takes.ANYTHING) == sorted(2 * of_engine + 3 * of_runs)
        for queue in (name, RUNS):
            work_queue(queue)(channel).delete()


def nothing() -> None:
    """Between two that are taken."""


def test_what_ends_at_once_is_answered_in_between_and_the_event_loop_has_its_turn(broker: str) -> None:
    """There is room again after each, for ever: as with copies of runs that others have run."""
    number = 2 * intakes.MOST_AT_ONCE + 20
    held: list[Any] = []
    most = 0

    def answer() -> None:
        nonlocal most
        most = max(most, len(held))
        while held:
            held.pop().ack()

    with closing(connect()) as connection, connection.channel() as channel:
        consumer = Consumer(channel, [work_queue(RUNS)], callbacks=[lambda _, message: held.append(message)])
        intake = Intake(consumer, [[RUNS]], lambda: Takes.ANYTHING, lambda: False, answer)
        for sent in range(number):
            connection.Producer().publish(sent, exchange="", routing_key=RUNS)
        done = [intake.open() for _ in range(3)]
        intake.close()
        left = work_queue(RUNS)(channel).get()
    assert done == [False, False, True]
    assert (most, held, left) == (1, [], None)


class Loop:
    """Of Celery's consumer what is asked of it; nothing is called before it is told to go round."""

    def __init__(self, subscription: Consumer) -> None:
        self.task_consumer = subscription
        self.hub = self
        self.soon: list[Any] = []
        self.later: list[Any] = []

    def call_soon(self, call: Any) -> None:
        self.soon.append(call)

    def call_later(self, _delay_s: float, call: Any) -> None:
        self.later.append(call)


def test_however_many_ask_a_long_queue_is_gone_on_with_once(broker: str) -> None:
    """Each run that ends asks for it: else there would be one more to go on in every turn of the loop."""
    with closing(connect()) as connection, connection.channel() as channel:
        producer = connection.Producer()
        for sent in range(4 * intakes.MOST_AT_ONCE):
            producer.publish(sent, exchange="", routing_key=RUNS)
        loop = Loop(Consumer(channel, [work_queue(RUNS)], callbacks=[lambda _, message: message.ack()]))
        slots = Slots(1, [RUNS])
        slots.attach(loop)
        slots.settle(nothing)
        slots.settle(nothing)
        for call in loop.soon:
            call()
        turns = 0
        while loop.later:
            (go_on,) = loop.later
            loop.later.clear()
            go_on()
            turns += 1
        left = work_queue(RUNS)(channel).get()
    assert (len(loop.soon), turns, left) == (3, 2, None)


def drain(connection: Any) -> None:
    with suppress(TimeoutError):
        while True:
            connection.drain_events(timeout=0.5)


def test_the_queue_of_an_engine_that_has_expired_is_there_again_when_it_is_used(
    broker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a worker was full for days, nobody consumed it."""
    monkeypatch.setattr(intakes, "DECLARED_FOR_S", 0.0)
    name, taken = engine_queue("test"), []
    with closing(connect()) as connection, connection.channel() as channel:
        queue: Any = work_queue(name)(channel)
        consumer = Consumer(channel, [work_queue(RUNS)], callbacks=[lambda body, _: taken.append(body)])
        intake = Intake(consumer, [[RUNS]], lambda: Takes.ANYTHING, lambda: False, nothing)
        intake.add(name)
        queue.delete()
        intake.add(name)
        connection.Producer().publish("taken up", exchange="", routing_key=name)
        intake.open()
        intake.close()
        queue.delete()
    assert taken == ["taken up"]
