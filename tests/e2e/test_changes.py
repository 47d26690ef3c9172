"""A change of a job or of a run acts within a second, wherever the run is, by real processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from scheduler_project.kernel.clock import utcnow
from tests.e2e.test_runs import body, log_of
from tests.integration.proxy import TcpProxy
from tests.system import System, running_system

SECOND = timedelta(seconds=1)
LOADED = timedelta(seconds=2)  # how much later a start may be seen on a machine that runs other tests

_SERVICE = """
import json
from uuid import UUID
from django.contrib.auth.models import User
from executions import services as runs
from executions.rescheduling import reschedule_execution
from jobs import services as jobs
from jobs.definitions import definition_body, read_definition
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from datetime import timedelta
user = User.objects.get(username="tests")
"""


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    """One slot in all, so that a run can be kept waiting in the queue."""
    with running_system(tmp_path_factory.mktemp("system"), PUNCTUAL_WORKER_SLOTS="1") as found:
        found.start_all("beat beat worker recorder auditor")
        found.wait_until_ready()
        yield found


def serve(system: System, code: str) -> datetime:
    """Call the services in a process of their own; when the call began."""
    out = system.manage("shell", "-c", f"{_SERVICE}\nbegun = utcnow()\n{code}\nprint(begun.isoformat())")
    return datetime.fromisoformat(out.splitlines()[-1])


def change(system: System, *job_ids: str, **columns: Any) -> None:
    """By SQL, past every service."""
    assignments = ", ".join(f"{name} = %s" for name in columns)
    text = f"UPDATE jobs_job SET {assignments} WHERE id = ANY(%s::uuid[]) RETURNING id"
    assert len(system.query(text, *columns.values(), list(job_ids))) == len(job_ids)


def run_of(system: System, job: str) -> dict[str, Any]:
    return system.executions(job)[-1]


def ended(system: System, job: str) -> dict[str, Any]:
    return system.wait_all_terminal([job], 1)[-1]


class Blocker:
    """A run that holds the only slot until it is let go."""

    def __init__(self, system: System, mark: Path, name: str) -> None:
        self._system = system
        self._mark = mark
        (self.job,) = system.create_jobs(body(name, f"until [ -e {mark} ]; do sleep 0.05; done", "now"))
        system.wait_for(lambda: run_of(system, self.job)["state"] == "Active", "the slot is taken")

    def let_go(self) -> None:
        self._mark.touch()
        ended(self._system, self.job)


@pytest.fixture
def blocker(system: System, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Blocker]:
    found = Blocker(system, tmp_path / "go", f"blocker of {request.node.name}")
    yield found
    found.let_go()


def queued(system: System, name: str, command: str, **fields: Any) -> str:
    """A job whose run waits in the queue of runs."""
    (job,) = system.create_jobs(body(name, command, "now", **fields))
    system.wait_for(lambda: run_of(system, job)["queued_at"], "it is queued")
    return job


def test_sql_changes_the_command_of_a_run_in_the_window(system: System) -> None:
    (job,) = system.create_jobs(body("windowed", "echo old", {"after": "2s"}))
    change(system, job, command="echo new")
    run = ended(system, job)
    assert log_of(system, run, 1) == "new\n"
    assert run["started_at"] - run["scheduled_for"] < LOADED


def test_a_queued_run_whose_command_is_changed_runs_the_new_one(system: System, blocker: Blocker) -> None:
    job = queued(system, "queued", "echo old")
    change(system, job, command="echo new")
    system.wait_for(lambda: run_of(system, job)["generation"] == 2, "it is called back", 2.0)
    blocker.let_go()
    run = ended(system, job)
    assert (log_of(system, run, 1), run["attempt"]) == ("new\n", 1)


def test_a_queued_run_of_a_job_that_is_paused_does_not_start(
    system: System, blocker: Blocker, tmp_path: Path
) -> None:
    job = queued(system, "paused", f"touch {tmp_path}/ran")
    change(system, job, paused_at=utcnow())
    system.wait_for(lambda: run_of(system, job)["state"] == "Paused", "it is Paused", 1.0)
    after = queued(system, "after the paused one", "true")
    blocker.let_go()
    ended(system, after)
    assert run_of(system, job)["state"] == "Paused"
    assert not (tmp_path / "ran").exists()
    begun = serve(system, f"jobs.resume_job(Job.objects.get(id='{job}'), user, utcnow(), 'run-latest')")
    run = ended(system, job)
    assert run["state"] == "Completed Normally"
    assert run["started_at"] - begun < LOADED


def test_a_queued_run_of_a_job_that_is_deleted_does_not_start(
    system: System, blocker: Blocker, tmp_path: Path
) -> None:
    job = queued(system, "deleted", f"touch {tmp_path}/ran")
    serve(system, f"jobs.archive_job(Job.objects.get(id='{job}'), user, utcnow())")
    assert run_of(system, job)["state"] == "Cancelled"
    after = queued(system, "after the deleted one", "true")
    blocker.let_go()
    ended(system, after)
    assert not (tmp_path / "ran").exists()


def test_a_queued_run_that_is_cancelled_does_not_start(
    system: System, blocker: Blocker, tmp_path: Path
) -> None:
    job = queued(system, "cancelled in the queue", f"touch {tmp_path}/ran")
    run = run_of(system, job)
    serve(system, f"runs.cancel_execution(UUID('{run['id']}'), user, utcnow())")
    after = queued(system, "after the cancelled one", "true")
    blocker.let_go()
    ended(system, after)
    assert run_of(system, job)["state"] == "Cancelled"
    assert not (tmp_path / "ran").exists()


def test_a_queued_run_is_moved_to_later(system: System, blocker: Blocker) -> None:
    job = queued(system, "moved to later", "true")
    run = run_of(system, job)
    at = "utcnow() + timedelta(seconds=4)"
    serve(system, f"reschedule_execution(UUID('{run['id']}'), {at}, user, utcnow())")
    due = run_of(system, job)["check_at"]
    blocker.let_go()
    run = ended(system, job)
    assert due <= run["started_at"] < due + LOADED


@pytest.mark.parametrize("away", ["1h", "60s"])
def test_a_run_is_moved_to_now(system: System, away: str) -> None:
    (job,) = system.create_jobs(body(f"moved to now from {away}", "true", {"after": away}))
    run = run_of(system, job)
    begun = serve(system, f"reschedule_execution(UUID('{run['id']}'), utcnow(), user, utcnow())")
    run = ended(system, job)
    assert begun <= run["started_at"] < begun + LOADED


def test_a_schedule_changed_by_sql_has_its_next_run_in_time(system: System) -> None:
    (job,) = system.create_jobs(body("sooner", "true", {"every": "1h"}))
    at = utcnow()
    change(system, job, schedule=json.dumps({"every": "1s"}))

    def ran() -> list[dict[str, Any]]:
        return [run for run in system.executions(job) if run["state"] == "Completed Normally"]

    first = system.wait_for(ran, "the new schedule has run")[0]
    assert first["started_at"] - at < SECOND + LOADED
    change(system, job, archived_at=utcnow())
    system.wait_for(lambda: all(run["finished_at"] for run in system.executions(job)), "nothing waits")


def test_none_of_many_changes_by_sql_is_lost_and_none_starts_twice(system: System, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    due = (utcnow() + 10 * SECOND).isoformat()
    bodies = [body(f"one of many {n}", f"echo old >> {mark}", {"at": due}) for n in range(30)]
    jobs = system.create_jobs(*bodies)
    for word in ("between", "new"):
        change(system, *jobs, command=f"echo {word} >> {mark}")
    system.wait_all_terminal(jobs, 30)
    assert mark.read_text().split() == ["new"] * 30


def test_a_change_that_no_beat_could_hear_of_is_carried_out_when_they_are_back(
    tmp_path: Path,
) -> None:
    with running_system(tmp_path) as system:
        address = urlsplit(system.database_url)
        proxy = TcpProxy(address.hostname or "127.0.0.1", address.port or 5432)
        try:
            there = address._replace(netloc=f"{address.netloc.rpartition('@')[0]}@127.0.0.1:{proxy.port}")
            for _ in range(2):
                system.start("beat", DATABASE_URL=there.geturl())
            system.start_all("worker recorder auditor")
            system.wait_until_ready()
            (job,) = system.create_jobs(body("unheard", "echo old", {"every": "1h"}))
            proxy.go_away()
            change(system, job, command="echo new")
            schedule = json.dumps({"every": "1s"})
            system.query("UPDATE jobs_job SET schedule = %s WHERE id = %s RETURNING id", schedule, job)
            proxy.come_back()

            def ran() -> list[dict[str, Any]]:
                return [run for run in system.executions(job) if run["state"] == "Completed Normally"]

            assert log_of(system, system.wait_for(ran, "the new schedule has run")[0], 1) == "new\n"
        finally:
            proxy.close()
