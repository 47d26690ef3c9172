"""What a run worker makes of a run that is to be stopped before its container is there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta
from pathlib import Path
from time import sleep
from typing import Any
from uuid import uuid4

import pytest

from containers.process.runtime import ProcessOptions, ProcessRuntime
from containers.supervise import Detached
from executions.claims import Claimed, Claims, claim_key, known_claims
from executions.entries import Flag
from executions.ids import execution_id
from executions.states import EventType
from executions.store import Store
from executions.window import Window
from executions.worker.assignments import Assignment
from executions.worker.commands import RunDefaults
from executions.worker.leases import PERIOD_S
from executions.worker.lifecycle import Ended, Held, RunWorker
from executions.worker.slots import Slots
from scheduler_project.kernel.clock import SYSTEM_CLOCK, monotonic, utcnow
from tests.integration.proxy import proxy_before
from tests.unit.executions.test_runspecs import SPEC

LONG = "{% for a in range(40000) %}{% for b in range(40000) %}{% endfor %}{% endfor %}"


@pytest.fixture
def worker(store: Store, tmp_path: Path) -> Iterator[RunWorker]:
    runtime = ProcessRuntime(ProcessOptions(home=tmp_path, groups=None))
    found = RunWorker("w", Slots(1), runtime, store, defaults=RunDefaults(), clock=SYSTEM_CLOCK)
    yield found
    found.stopping.set()
    found.close()


def assignment(command: str, flags: Flag = Flag.NONE) -> Assignment:
    spec = replace(SPEC, type="Script", image="", command=command, parameters={}, env={})
    run = execution_id(uuid4(), utcnow(), "schedule", 3)
    return Assignment(
        execution_id=run, attempt=1, queued_at=utcnow(), spec=spec, spec_id=spec.id, flags=flags
    )


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


def test_a_claim_that_could_not_be_ended_is_ended_when_redis_is_back(
    settings: Any, store: Store, tmp_path: Path
) -> None:
    runtime = ProcessRuntime(ProcessOptions(home=tmp_path, groups=None))
    with proxy_before(settings.REDIS_URL) as (proxy, url):
        cut = Store(url, store.namespace, timeout_s=1.0)
        worker = RunWorker("w", Slots(1), runtime, cut, defaults=RunDefaults(), clock=SYSTEM_CLOCK)
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


def outcome_of(store: Store, held: Held) -> bytes:
    (known,) = known_claims(store, [held.given.execution_id])
    return known.outcome if known else b""
