"""Queues, priorities, room and pools on the whole system, over both brokers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from containers.capacity import MEBIBYTE, host_capacity
from tests.e2e.test_runs import body, cancel
from tests.faults.ledgers import Ledger, all_normal
from tests.faults.test_pools import MAKE_POOL, USAGE
from tests.system import System, running_system

WAITS_FOR = """
from executions.models import Execution
from executions.store import default_store
from executions.waiting import waits_for
result = [waits_for(run, default_store()) for run in Execution.objects.filter(job_id=job)][0]
"""


@pytest.fixture(scope="module", params=["rabbitmq", "redis"])
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """Two workers of the default queue, one of which has others too and two CPUs; one with a single slot."""
    with running_system(tmp_path_factory.mktemp("system"), request.param, PUNCTUAL_WORKER_SLOTS="4") as found:
        found.start_all("beat recorder auditor worker")
        found.start("worker", PUNCTUAL_WORKER_QUEUES="single", PUNCTUAL_WORKER_SLOTS="1")
        found.start("worker", PUNCTUAL_WORKER_QUEUES="runs,room,other", PUNCTUAL_WORKER_CPUS="2")
        found.wait_until_ready()
        yield found


def worker_of(row: dict[str, Any]) -> str:
    return str(row["worker"].split("@")[0])


def test_a_pool_of_two_has_never_more_than_two_runs(system: System, tmp_path: Path) -> None:
    """Ten runs of ten jobs, eight slots of two workers; and the slots are free for others."""
    ledger = Ledger(tmp_path / "ledger")
    system.console.run(MAKE_POOL, pool={"name": "two", "slots": 2})
    jobs = system.create_jobs(
        *[body(f"pooled {n}", ledger.entered("sleep 0.3"), {"after": "1s"}, pool="two") for n in range(10)]
    )
    (free,) = system.create_jobs(body("free", "true", {"after": "1500ms"}))
    waiting = system.wait_for(
        lambda: [row for row in system.executions(*jobs) if row["reason"] == "pool_full"], "some wait"
    )
    assert {(row["state"], row["message"]) for row in waiting} == {
        ("Waiting", "waits for a place: the pool 'two' may have 2 runs at once")
    }
    (run,) = system.wait_all_terminal([free], 1)
    rows = system.wait_all_terminal(jobs, 10)
    assert run["started_at"] < max(row["started_at"] for row in rows)
    assert all_normal(rows)
    assert ledger.most_at_once() == 2
    assert len(ledger.begun()) == 10
    assert {row["reason"] for row in rows} == {"succeeded"}
    system.wait_for(lambda: system.console.run(USAGE, name="two") == [0, 0, 0], "all places are free")


def test_a_queue_leads_to_its_workers_and_of_a_backlog_the_highest_class_begins_first(
    system: System, tmp_path: Path
) -> None:
    """One slot that is taken, fifty of low priority that wait; then one of each other class comes."""
    ledger, gate = Ledger(tmp_path / "ledger"), tmp_path / "gate"
    jobs = system.create_jobs(
        body("first", f"until test -e {gate}; do sleep 0.05; done", "now", queue="single")
    )
    system.wait_for(lambda: [row["state"] for row in system.executions(*jobs)] == ["Active"], "it runs")
    low = [body(f"low {n}", ledger.entered(":"), "now", queue="single", priority="low") for n in range(50)]
    jobs += system.create_jobs(*low)
    _wait_until_sent(system, jobs)
    jobs += system.create_jobs(body("normal", ledger.entered(":"), "now", queue="single"))
    jobs += system.create_jobs(body("high", ledger.entered(":"), "now", queue="single", priority="high"))
    _wait_until_sent(system, jobs)
    gate.touch()
    system.wait_for(lambda: len(ledger.begun()) >= 4, "the first of them have begun")
    assert ledger.begun()[:2] == ["high", "normal"]
    assert ledger.most_at_once() == 1
    rows = system.wait_for(lambda: [row for row in system.executions(*jobs) if row["worker"]], "it is known")
    assert {worker_of(row) for row in rows} == {system.processes[4].name}


def test_a_run_of_a_queue_that_nobody_listens_on_waits_and_says_so(system: System) -> None:
    (job,) = system.create_jobs(body("nowhere", "true", "now", queue="nowhere"))
    _wait_until_sent(system, [job])
    assert system.console.run(WAITS_FOR, job=job) == "a worker: none listens on the queue 'nowhere'"
    late = system.start("worker", PUNCTUAL_WORKER_QUEUES="nowhere")
    (row,) = system.wait_all_terminal([job], 1)
    assert worker_of(row) == late.name
    assert late.stop() == 0


def test_a_worker_takes_what_its_cpus_hold_and_starves_no_large_run(system: System, tmp_path: Path) -> None:
    """Two CPUs, four slots, two queues: small runs come all the time, a large one waits for both CPUs."""
    ledger = Ledger(tmp_path / "ledger")

    def sized(name: str, cpus: float, queue: str, then: str) -> dict[str, Any]:
        return _sized(name, cpus, queue, ledger.entered(then))

    jobs = system.create_jobs(*[sized(f"before {n}", 1, "room", "sleep 0.6") for n in range(2)])
    system.wait_for(lambda: len(ledger.begun()) == 2, "two run")
    jobs += system.create_jobs(sized("large", 2, "other", "sleep 0.1"))
    _wait_until_sent(system, jobs)
    jobs += system.create_jobs(*[sized(f"after {n}", 1, "room", "sleep 0.1") for n in range(12)])
    (huge,) = system.create_jobs(sized("huge", 2.5, "room", ":"))
    rows = system.wait_all_terminal(jobs, 15)
    assert all_normal(rows)
    assert ledger.most_at_once({"large": 2}) == 2
    assert ledger.begun().index("large") <= 4, "those that came later did not keep it out"
    waits = system.wait_for(lambda: system.executions(huge)[0]["message"], "it says why it does not run")
    assert waits == (
        "waits for a larger worker of the queue 'room': it needs 2.5 CPUs, and the largest has"
        f" 2 CPUs and {_memory()}. Start one, or let the job ask for less"
    )
    assert system.executions(huge)[0]["reason"] == "no_room"
    assert system.executions(huge)[0]["state"] == "Waiting"


def test_a_large_run_that_does_not_come_any_more_is_not_awaited(system: System, tmp_path: Path) -> None:
    """One CPU of two is taken and a run that needs both waits; it is cancelled, and others come."""
    gate = tmp_path / "gate"
    jobs = system.create_jobs(_sized("gone small", 1, "other", _until(gate)))
    system.wait_for(lambda: system.executions(*jobs)[0]["state"] == "Active", "it runs")
    (large,) = system.create_jobs(_sized("gone large", 2, "other", "true"))
    _wait_until_sent(system, [large])
    others = system.create_jobs(*[_sized(f"gone other {n}", 0.5, "other", "true") for n in range(2)])
    _wait_until_sent(system, others)
    assert {row["state"] for row in system.executions(large, *others)} == {"Waiting"}
    cancel(system, system.executions(large)[0])
    assert all_normal(system.wait_all_terminal(others, 2))
    gate.touch()
    system.wait_all_terminal(jobs, 1)


def test_a_worker_that_is_too_small_does_not_keep_a_large_run_from_a_larger_one(
    system: System, tmp_path: Path
) -> None:
    """The large one has it in its hands until it has room, while the small one takes others."""
    ledger, gate, narrow = Ledger(tmp_path / "ledger"), tmp_path / "gate", tmp_path / "narrow"
    jobs = system.create_jobs(_sized("kept small", 1, "other", _until(gate)))
    system.wait_for(lambda: system.executions(*jobs)[0]["state"] == "Active", "it runs")
    worker = system.start(
        "worker", PUNCTUAL_WORKER_QUEUES="other,narrow", PUNCTUAL_WORKER_CPUS="1", PUNCTUAL_WORKER_SLOTS="1"
    )
    jobs += system.create_jobs(_sized("narrow", 1, "narrow", _until(narrow)))
    system.wait_for(lambda: system.executions(jobs[1])[0]["state"] == "Active", "the small one is full")
    (large,) = system.create_jobs(_sized("kept large", 2, "other", ledger.entered(":")))
    _wait_until_sent(system, [large])
    jobs += system.create_jobs(
        *[_sized(f"kept other {n}", 0.5, "other", ledger.entered("sleep 0.1")) for n in range(20)]
    )
    narrow.touch()
    system.wait_for(lambda: len(ledger.begun()) >= 2, "the small one takes others")
    gate.touch()
    system.wait_for(lambda: "kept large" in ledger.begun(), "it begins")
    assert ledger.begun().index("kept large") < 20
    rows = system.wait_all_terminal([large], 1)
    assert worker_of(rows[0]) == system.processes[5].name
    assert "no_room" not in str(system.events(rows[0]["id"]))
    system.wait_all_terminal(jobs, 22)
    assert worker.stop() == 0


def _sized(name: str, cpus: float, queue: str, command: str) -> dict[str, Any]:
    return body(name, command, "now", queue=queue, container={"resources": {"cpu": {"request": cpus}}})


def _until(gate: Path) -> str:
    return f"until test -e {gate}; do sleep 0.05; done"


def _memory() -> str:
    memory_bytes = host_capacity().memory_bytes
    assert memory_bytes is not None
    return f"{memory_bytes // MEBIBYTE} MiB"


def _wait_until_sent(system: System, jobs: list[str]) -> None:
    def sent() -> bool:
        return all(row["queued_at"] for row in system.executions(*jobs))

    system.wait_for(sent, "all are with the broker")
