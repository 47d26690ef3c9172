"""A run that outlasts RabbitMQ's acknowledgement time-out, on a broker whose time-out is one minute.

With PUNCTUAL_TEST_ACK_TIMEOUT=1; it takes four minutes, and needs rabbitmq-server on this machine for a node
of its own. That a run's message is acknowledged as soon as the run has begun is asserted in test_worker.py
each time.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from pathlib import Path

import pytest
from amqp.exceptions import PreconditionFailed
from kombu import Connection, Queue

from executions.bus.topology import work_queue
from tests.e2e.test_runs import log_of
from tests.faults.test_worker import begin_long_run
from tests.own_servers import OwnRabbitMQ
from tests.system import running_system

TIMEOUT_S = 60
RUN_S = 180

pytestmark = pytest.mark.skipif(
    os.environ.get("PUNCTUAL_TEST_ACK_TIMEOUT") != "1", reason="PUNCTUAL_TEST_ACK_TIMEOUT=1: four minutes"
)


class Holder:
    """A consumer that never acknowledges: what the broker does to one that takes too long."""

    def __init__(self, url: str) -> None:
        self._connection = Connection(url)
        channel = self._connection.channel()
        queue: Queue = work_queue("held")(channel)
        queue.declare()
        self._connection.Producer().publish("held", exchange="held", routing_key="held")
        queue.consume("holder", lambda *_: None)

    def is_cut_off(self) -> bool:
        try:
            self._connection.drain_events(timeout=0.1)
        except TimeoutError:
            return False
        except PreconditionFailed:
            return True
        return False

    def close(self) -> None:
        self._connection.release()


@pytest.mark.timeout(420)
def test_a_run_outlasts_the_brokers_acknowledgement_timeout(tmp_path: Path) -> None:
    with ExitStack() as stack:
        broker = OwnRabbitMQ(tmp_path / "rabbitmq", f"consumer_timeout = {TIMEOUT_S * 1000}\n")
        broker.start()
        stack.callback(broker.kill)
        url = broker.url
        system = stack.enter_context(running_system(tmp_path, BROKER_URL=url))
        stack.enter_context(closing(holder := Holder(url)))
        worker, *_ = system.start_all("worker beat recorder auditor")
        system.wait_until_ready()
        job, run = begin_long_run(system, worker, "outlasts", RUN_S)
        system.wait_for(holder.is_cut_off, "the broker's patience has ended", 3 * TIMEOUT_S)
        (ended,) = system.wait_all_terminal([job], 1, 2 * RUN_S)
        assert (ended["state"], ended["attempt"]) == ("Completed Normally", 1)
        assert log_of(system, ended, 1).split() == [str(n) for n in range(1, RUN_S + 1)]
        starts = [event for event in system.events(run["id"]) if event["type"] == "JOB_STARTED"]
        assert len(starts) == 1
        assert worker.alive
        assert "PRECONDITION_FAILED" not in worker.text()
