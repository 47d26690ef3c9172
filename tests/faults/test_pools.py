"""Pools where something goes wrong: counted by the runs themselves, in a ledger of beginnings and ends.

The tests share a system, and one that fails is tried again in it: so each try has a worker, and a pool of
its own.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from time import sleep

import pytest

from tests.e2e.test_runs import body
from tests.faults.ledgers import Ledger, all_normal
from tests.system import Process, System, running_system

LEASE_S = 2
MAKE_POOL = """
from django.contrib.auth.models import Group, User
from jobs.pools import PoolDefinition, create_pool
user, _ = User.objects.get_or_create(username="tests", defaults={"is_superuser": True})
Group.objects.get_or_create(name=pool.get("team") or "tests")
create_pool(PoolDefinition(**pool), user)
result = None
"""
CHANGE_SLOTS = """
from dataclasses import replace
from django.contrib.auth.models import User
from jobs.pools import definition_of, find_pool, update_pool
user = User.objects.get(username="tests")
pool = find_pool(name, user)
update_pool(pool, replace(definition_of(pool), slots=slots), user)
result = None
"""
USAGE = """
from django.contrib.auth.models import User
from jobs.pools import find_pool, usage_of
usage = usage_of([find_pool(name, User.objects.get(username="tests"))])[name]
result = [usage.active, usage.waiting, usage.exceeded]
"""
FLUSH = """
from executions.store import default_store
default_store().delete_namespace()
result = None
"""
RUN_NOW = """
from django.contrib.auth.models import User
from jobs.models import Job
from jobs.runs import run_job
from scheduler_project.kernel.clock import utcnow
user = User.objects.get(username="tests")
for _ in range(times):
    run_job(Job.objects.select_related("owner", "task", "pool").get(id=job), user, utcnow())
result = None
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("system"), PUNCTUAL_RUN_LEASE=f"{LEASE_S}s") as found:
        found.start_all("beat recorder auditor")
        found.wait_until_ready()
        yield found


@pytest.fixture
def pool(tmp_path: Path) -> str:
    """The name of a pool that no other try of a test has."""
    return tmp_path.name


@pytest.fixture
def worker(system: System) -> Process:
    """A worker that lives: the last one started, or a new one."""
    alive = [process for process in system.processes if process.kind == "worker" and process.alive]
    return alive[-1] if alive else system.start("worker")


def test_a_killed_workers_places_go_with_its_runs_and_end_with_them(
    system: System, tmp_path: Path, pool: str, worker: Process
) -> None:
    """While nobody watches it a run goes on, and keeps its place; only when it has ended the next begins."""
    ledger, gate = Ledger(tmp_path / "ledger"), tmp_path / "gate"
    system.wait_until_ready()
    system.console.run(MAKE_POOL, pool={"name": pool, "slots": 1})
    wait = ledger.entered(f"until test -e {gate}; do sleep 0.05; done")
    jobs = system.create_jobs(body("long", wait, "now", pool=pool))
    system.wait_for(ledger.begun, "it runs")
    jobs += system.create_jobs(body("next", ledger.entered(":"), "now", pool=pool))
    system.wait_for(lambda: system.console.run(USAGE, name=pool) == [1, 1, 0], "the next waits")
    worker.kill()
    system.start("worker")
    system.wait_for(
        lambda: not system.executions(jobs[0])[0]["worker"].startswith(worker.name), "another takes it up"
    )
    assert ledger.begun() == ["long"]
    gate.touch()
    rows = system.wait_all_terminal(jobs, 2)
    assert all_normal(rows)
    assert ledger.most_at_once() == 1
    assert ledger.begun() == ["long", "next"]


@pytest.mark.usefixtures("worker")
def test_places_outlast_any_absence_of_all_workers(system: System, tmp_path: Path, pool: str) -> None:
    """Longer than three leases, after which places end that nobody keeps."""
    ledger, gate = Ledger(tmp_path / "ledger"), tmp_path / "gate"
    system.console.run(MAKE_POOL, pool={"name": pool, "slots": 1})
    wait = ledger.entered(f"until test -e {gate}; do sleep 0.05; done")
    jobs = system.create_jobs(body("goes on", wait, "now", pool=pool))
    system.wait_for(lambda: system.executions(*jobs)[0]["state"] == "Active", "it runs")
    jobs += system.create_jobs(*[body(f"waits {n}", ledger.entered(":"), "now", pool=pool) for n in range(2)])
    system.wait_for(lambda: system.console.run(USAGE, name=pool) == [1, 2, 0], "the others wait")
    for process in system.processes:
        if process.kind == "worker" and process.alive:
            process.kill()
    sleep(3.5 * LEASE_S)
    assert system.console.run(USAGE, name=pool) == [1, 2, 0]
    workers = [system.start("worker") for _ in range(2)]
    taken_up = [worker.name for worker in workers]
    system.wait_for(
        lambda: system.executions(jobs[0])[0]["worker"].partition("@")[0] in taken_up, "it is taken up"
    )
    gate.touch()
    assert all_normal(system.wait_all_terminal(jobs, 3))
    assert ledger.most_at_once() == 1
    assert system.console.run(USAGE, name=pool)[2] == 0


@pytest.mark.usefixtures("worker")
def test_redis_may_lose_everything(system: System, tmp_path: Path, pool: str) -> None:
    ledger = Ledger(tmp_path / "ledger")
    system.console.run(MAKE_POOL, pool={"name": pool, "slots": 1})
    jobs = system.create_jobs(
        *[body(f"pooled {n}", ledger.entered("sleep 3"), "now", pool=pool) for n in range(2)]
    )
    jobs += system.create_jobs(body("later", ledger.entered(":"), {"after": "1s"}, pool=pool))
    system.wait_for(lambda: system.console.run(USAGE, name=pool) == [1, 1, 0], "one waits")
    system.console.run(FLUSH)
    rows = system.wait_all_terminal(jobs, 3)
    assert all_normal(rows)
    assert ledger.most_at_once() == 1, "what ran made its place anew before a limit let anybody in"


@pytest.mark.usefixtures("worker")
def test_a_changed_number_of_slots_acts_at_once_and_max_active_holds_for_every_run(
    system: System, tmp_path: Path, pool: str
) -> None:
    ledger, gate = Ledger(tmp_path / "ledger"), tmp_path / "gate"
    system.console.run(MAKE_POOL, pool={"name": pool, "slots": 1, "team": pool})
    wait = ledger.entered(f"until test -e {gate}; do sleep 0.05; done")
    (job,) = system.create_jobs(body("x", wait, "now", maxActive=2, overlap="allow", owner=pool))
    system.wait_for(lambda: len(ledger.begun()) == 1, "one runs")
    system.console.run(RUN_NOW, job=job, times=4)
    assert _messages(system, job, 4) == {f"waits for a place: the team {pool!r} may have 1 run at once"}
    system.console.run(CHANGE_SLOTS, name=pool, slots=5)
    system.wait_for(lambda: len(ledger.begun()) == 2, "a second one begins at once", timeout_s=3)
    gate.touch()
    rows = system.wait_all_terminal([job], 5)
    assert all_normal(rows)
    assert ledger.most_at_once() == 2


def _messages(system: System, job: str, count: int) -> set[str]:
    def waiting() -> list[str]:
        rows = [row["message"] for row in system.executions(job) if row["reason"] == "pool_full"]
        return rows if len(rows) == count else []

    return set(system.wait_for(waiting, f"{count} wait"))
