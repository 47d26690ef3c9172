"""What a run worker makes of a run that is to be stopped before its container is there."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from time import sleep
from typing import Any
from uuid import uuid4

import pytest
from django.conf import settings

from containers.docker import DockerOptions, DockerRuntime
from containers.docker.container import ANSWERS_WITHIN_S
from containers.process.runtime import ProcessOptions, ProcessRuntime
from containers.supervise import Detached, NotLaunched
from executions.claims import MOST_TAKE_UPS, Claimed, Claims, claim_key, known_claims
from executions.engines import Engines, engine_queue, queues_of_engines
from executions.entries import Flag, Popped
from executions.events import decode
from executions.ids import execution_id
from executions.states import EventType
from executions.store import Store
from executions.window import Window
from executions.worker.assignments import Assignment
from executions.worker.attempts import Ended, Held
from executions.worker.commands import RunDefaults
from executions.worker.leases import PERIOD_S
from executions.worker.lifecycle import RunWorker
from executions.worker.preparing import prepare
from executions.worker.slots import Slots
from scheduler_project.kernel.clock import SYSTEM_CLOCK, monotonic, utcnow
from tests.contract.engine_proxy import EngineProxy
from tests.images import busybox_image
from tests.integration.counting_store import CountingStore
from tests.integration.proxy import proxy_before
from tests.unit.executions.test_runspecs import SPEC

BEGUN = datetime(2026, 11, 30, 2, tzinfo=UTC)
LONG = "{% for a in range(40000) %}{% for b in range(40000) %}{% endfor %}{% endfor %}"


@pytest.fixture
def worker(store: Store, tmp_path: Path) -> Iterator[RunWorker]:
    runtime = ProcessRuntime(ProcessOptions(home=tmp_path, groups=None))
    found = RunWorker("w", Slots(1, ["runs"]), runtime, store, defaults=RunDefaults(), clock=SYSTEM_CLOCK)
    yield found
    found.stopping.set()
    found.close()


def assignment(command: str, flags: Flag = Flag.NONE, **fields: Any) -> Assignment:
    spec = replace(SPEC, type="Script", command=command, parameters={}, env={}, **fields)
    run = execution_id(uuid4(), utcnow(), "schedule", 3)
    return Assignment(
        execution_id=run, attempt=1, queued_at=utcnow(), spec=spec, spec_id=spec.id, flags=flags
    )


def test_a_run_costs_five_round_trips_to_redis(store: Store, tmp_path: Path) -> None:
    """Its claim, its places in pools, a last look whether it is wanted, the end of both.

    What renews and archives meanwhile has threads of its own.
    """
    counting = CountingStore(settings.REDIS_URL, store.namespace)
    runtime = ProcessRuntime(ProcessOptions(home=tmp_path, groups=None))
    own = RunWorker("w", Slots(1, ["runs"]), runtime, counting, defaults=RunDefaults(), clock=SYSTEM_CLOCK)
    try:
        counting.reset()
        for _ in range(4):
            held = begun(own, assignment("true"))
            own.report(held, EventType.COMPLETED, own.execute(held))
        assert counting.round_trips == 4 * 5
    finally:
        own.stopping.set()
        own.close()


def begun(worker: RunWorker, given: Assignment) -> Held:
    held = worker.begin(given)
    assert held is not None
    return held


def wait_until_heard(worker: RunWorker, held: Held) -> None:
    deadline = monotonic() + 10
    while str(worker._leases.answer(held.attempt)) != "stopped":
        assert monotonic() < deadline


def test_what_is_cancelled_before_it_starts_is_neither_rendered_nor_run(
    worker: RunWorker, window: Window, tmp_path: Path
) -> None:
    held = begun(worker, assignment(f"touch {tmp_path / 'ran'}; {LONG}"))
    window.forbid(held.given.execution_id)
    wait_until_heard(worker, held)
    ended = worker.execute(held)
    assert (ended.reason, ended.message) == ("user", "cancelled before it was started")
    assert not (tmp_path / "ran").exists()


def test_a_cancel_just_before_the_start_starts_nothing(
    worker: RunWorker, window: Window, tmp_path: Path
) -> None:
    held = begun(worker, assignment(f"touch {tmp_path / 'ran'}"))
    worker._leases._service.stop()  # no renewal tells of it by chance
    window.forbid(held.given.execution_id)
    assert worker.execute(held).message == "cancelled before it was started"
    assert not (tmp_path / "ran").exists()


def test_what_is_taken_up_to_be_cancelled_and_has_no_container_is_cancelled(
    worker: RunWorker, window: Window
) -> None:
    given = assignment(LONG, Flag.REATTACH)
    window.forbid(given.execution_id)
    ended = worker.execute(begun(worker, given))
    assert ended.reason == "user"
    assert ended.message.startswith("cancelled; there is no container")


def test_what_is_taken_up_and_has_no_container_is_lost_whatever_its_template_says(worker: RunWorker) -> None:
    assert worker.execute(begun(worker, assignment("{{ nope }}", Flag.REATTACH))).reason == "lost"


def test_a_worker_that_was_stalled_until_another_had_its_run_starts_nothing(
    worker: RunWorker, store: Store, tmp_path: Path
) -> None:
    held = begun(worker, assignment(f"touch {tmp_path / 'ran'}"))
    worker._leases._service.stop()  # what a stall does
    claims = Claims(store, "another", timedelta(minutes=1))
    store.batch(lambda pipe: pipe.delete(claim_key(store, held.given.execution_id)))
    assert claims.claim(*held.attempt) is Claimed.WON
    sleep(3 * PERIOD_S)
    with pytest.raises(Detached):
        worker.execute(held)
    assert not (tmp_path / "ran").exists()


def test_a_worker_that_ends_before_the_start_leaves_the_whole_start_to_another(
    worker: RunWorker, window: Window, store: Store, tmp_path: Path
) -> None:
    held = begun(worker, assignment(f"touch {tmp_path / 'ran'}"))
    worker.stopping.set()
    with pytest.raises(NotLaunched) as raised:
        worker.execute(held)
    worker.hand_over(held, begun=not isinstance(raised.value, NotLaunched))
    assert not (tmp_path / "ran").exists()
    again = Claims(store, "another", timedelta(minutes=1))
    assert again.claim(*held.attempt, generation=held.given.generation) is Claimed.WON
    popped = next_run(window)
    assert (popped.execution_id, popped.flags) == (held.given.execution_id, Flag.NONE)


def test_a_claim_that_could_not_be_ended_is_ended_when_redis_is_back(
    settings: Any, store: Store, tmp_path: Path
) -> None:
    runtime = ProcessRuntime(ProcessOptions(home=tmp_path, groups=None))
    with proxy_before(settings.REDIS_URL) as (proxy, url):
        cut = Store(url, store.namespace, timeout_s=1.0)
        worker = RunWorker("w", Slots(1, ["runs"]), runtime, cut, defaults=RunDefaults(), clock=SYSTEM_CLOCK)
        held = begun(worker, assignment("true"))
        proxy.go_away()
        worker.report(held, EventType.COMPLETED, Ended("succeeded", "exit code 0", 0))
        assert not worker._leases.reserve(held.attempt)
        proxy.come_back()
        deadline = monotonic() + 15
        while not outcome_of(store, held):
            assert monotonic() < deadline
        worker.stopping.set()
        worker.close()
        cut.close()


@pytest.mark.docker
def test_a_worker_ends_though_its_engine_is_silent_and_leaves_the_run_to_others(
    store: Store, window: Window, tmp_path: Path
) -> None:
    proxy = EngineProxy(tmp_path / "engine.sock")
    runtime = DockerRuntime(DockerOptions(host=proxy.host))
    runtime.ping()
    proxy.flowing.clear()
    worker = RunWorker("w", Slots(1, ["runs"]), runtime, store, defaults=RunDefaults(), clock=SYSTEM_CLOCK)
    held = begun(worker, assignment("true", image="none"))
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(worker.execute, held)
        sleep(0.5)
        told_at = monotonic()
        worker.stopping.set()
        with pytest.raises(Detached):
            running.result(10)
    worker.hand_over(held)
    worker.close()
    assert monotonic() - told_at < 10
    popped = next_run(window)
    assert (popped.execution_id, popped.flags) == (held.given.execution_id, Flag.REATTACH)
    proxy.cut()


@pytest.mark.docker
def test_what_has_begun_is_not_lost_to_a_silent_engine_in_the_time_of_a_start(
    store: Store, tmp_path: Path
) -> None:
    given = assignment("sleep 1", image=busybox_image(), container={"startTimeout": "1s"})
    proxy = EngineProxy(tmp_path / "engine.sock")
    runtime = DockerRuntime(DockerOptions(host=proxy.host))
    worker = RunWorker("w", Slots(1, ["runs"]), runtime, store, defaults=RunDefaults(), clock=SYSTEM_CLOCK)
    try:
        runtime.launch(prepare(given, RunDefaults()).container)
        held = begun(worker, replace(given, flags=Flag.REATTACH))
        proxy.flowing.clear()
        with ThreadPoolExecutor(1) as pool:
            ended = pool.submit(worker.execute, held)
            sleep(ANSWERS_WITHIN_S + 1)
            proxy.flowing.set()
            assert ended.result(30).succeeded
        worker.report(held, EventType.COMPLETED, ended.result())
    finally:
        worker.stopping.set()
        worker.close()
        proxy.cut()


def test_a_run_that_ended_unwatched_ended_when_it_did(worker: RunWorker, store: Store) -> None:
    given = assignment("true")
    first = begun(worker, given)
    worker.execute(first)
    worker.stopping.set()
    worker.hand_over(first)
    worker.stopping.clear()
    sleep(1.0)
    taken_up_at = utcnow()
    held = begun(worker, replace(given, flags=Flag.REATTACH))
    worker.report(held, EventType.COMPLETED, worker.execute(held))
    (event,) = decode(outcome_of(store, held))
    assert event.started_at == first.started_at
    assert first.started_at <= event.at < taken_up_at - timedelta(seconds=0.5)


def elsewhere(store: Store, given: Assignment) -> None:
    """A worker of another engine had begun it, and is gone."""
    gone = Claims(store, "gone", timedelta(minutes=1))
    gone.engine = "another"
    gone.claim(*given.key, begun_at=BEGUN)
    gone.give_up(*given.key)


def test_what_another_engine_has_is_sent_there_as_long_as_that_is_awaited(
    worker: RunWorker, window: Window, store: Store
) -> None:
    given = assignment("true", Flag.REATTACH)
    elsewhere(store, given)
    Engines(store).announce("another")
    assert worker.begin(given) is None
    popped = next_run(window)
    assert (popped.execution_id, popped.flags) == (given.execution_id, Flag.REATTACH)
    queues = queues_of_engines(store, [given.key], utcnow(), timedelta(minutes=1))
    assert queues == {given.key: engine_queue("another")}
    later = utcnow() + timedelta(minutes=2)
    assert queues_of_engines(store, [given.key], later, timedelta(minutes=1)) == {}


def test_what_a_given_up_engine_has_is_lost_and_may_still_run(worker: RunWorker, store: Store) -> None:
    given = assignment("true", Flag.REATTACH)
    elsewhere(store, given)
    held = begun(worker, given)
    ended = worker.execute(held)
    assert (ended.reason, ended.gone, held.begun_at) == ("lost", False, BEGUN)
    assert "on the engine another, of which no worker has been seen" in ended.message


def next_run(window: Window) -> Popped:
    """What is due now: Redis' milliseconds may be one behind those of this process."""
    deadline = monotonic() + 5
    while not (runs := window.pop([3], timedelta(minutes=1), 10)[0].runs):
        assert monotonic() < deadline
    (popped,) = runs
    return popped


def outcome_of(store: Store, held: Held) -> bytes:
    (known,) = known_claims(store, [held.given.execution_id])
    return known.outcome if known else b""


def test_a_run_whose_workers_go_away_one_after_the_other_is_given_up(
    worker: RunWorker, store: Store, tmp_path: Path
) -> None:
    given = assignment("sleep 60", Flag.REATTACH)
    for times in range(1, MOST_TAKE_UPS + 1):
        assert (
            Claims(store, f"worker {times}", timedelta(minutes=1)).note_take_up(given.execution_id) == times
        )
    ended = worker.execute(begun(worker, given))
    assert (ended.reason, ended.gone) == ("lost", False)
    assert ended.message.startswith(
        f"{MOST_TAKE_UPS + 1} times within minutes the worker that had it went away"
    )


def test_workers_that_end_in_order_are_not_counted(worker: RunWorker, store: Store) -> None:
    given = assignment("sleep 60", Flag.REATTACH)
    claims = Claims(store, "another", timedelta(minutes=1))
    claims.note_take_up(given.execution_id)
    held = begun(worker, given)
    worker.stopping.set()
    worker.hand_over(held)
    assert claims.note_take_up(given.execution_id) == 1
