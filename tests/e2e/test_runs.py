"""One run from end to end, by real processes, over RabbitMQ and over kombu's Redis transport."""

from __future__ import annotations

import gzip
import signal
from collections.abc import Iterator
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from tests.system import System, running_system
from tests.unit.executions.test_rendering import BOMBS

SECOND = timedelta(seconds=1)


@pytest.fixture(scope="module", params=["rabbitmq", "redis"])
def system(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("system"), request.param) as found:
        found.start_all()
        found.wait_until_ready()
        yield found


def body(name: str, command: str, schedule: Any, **fields: Any) -> dict[str, Any]:
    return {
        "name": name,
        "type": "Script",
        "command": command,
        "schedule": schedule,
        "owner": "tests",
        **fields,
    }


def log_of(system: System, execution: dict[str, Any], attempt: int) -> str:
    """From the archive, where it is a moment after the end."""
    pattern = f"logs/archive/*/{execution['id']}/{attempt}.log.gz"
    system.wait_for(lambda: any(system.home.glob(pattern)), "its log is archived")
    (found,) = system.home.glob(pattern)
    return gzip.decompress(found.read_bytes()).decode()


def test_a_run_starts_within_a_second_of_its_due_time(system: System) -> None:
    (run,) = system.run_in_time(lambda name: [body(f"soon, {name}", "echo done", {"after": "2s"})])
    assert run["state"] == "Completed Normally"
    assert (run["exit_code"], run["attempt"], run["reason"]) == (0, 1, "succeeded")
    assert run["scheduled_for"] <= run["queued_at"] <= run["started_at"] <= run["finished_at"]
    assert log_of(system, run, 1) == "done\n"


def test_the_history_of_a_run_has_each_statement_once(system: System) -> None:
    (job,) = system.create_jobs(body("history", "true", "now"))
    (run,) = system.wait_all_terminal([job], 1)
    wanted = ["JOB_QUEUED", "JOB_STARTED", "JOB_COMPLETED"]
    system.wait_for(lambda: len(system.events(run["id"])) == 3, "three events")
    assert [event["type"] for event in system.events(run["id"])] == wanted


def test_a_failing_command_makes_all_its_attempts(system: System) -> None:
    (job,) = system.create_jobs(
        body("failing", "echo attempt $PUNCTUAL_ATTEMPT; exit 3", "now", retries=2, retryDelay="1s")
    )
    (run,) = system.wait_all_terminal([job], 1)
    assert run["state"] == "Completed Abnormally"
    assert (run["exit_code"], run["attempt"], run["reason"]) == (3, 3, "failed")
    system.wait_for(lambda: len(system.events(run["id"])) == 11, "eleven events")
    events = [(event["type"], event["attempt"]) for event in system.events(run["id"])]
    one_attempt = ["JOB_QUEUED", "JOB_STARTED", "JOB_FAILED"]
    assert sorted(events) == sorted(
        [(kind, attempt) for attempt in (1, 2, 3) for kind in one_attempt]
        + [("JOB_RETRYING", 2), ("JOB_RETRYING", 3)]
    )
    failed = [event for event in system.events(run["id"]) if event["type"] == "JOB_FAILED"]
    started = [event for event in system.events(run["id"]) if event["type"] == "JOB_STARTED"]
    for failure, start in zip(failed, started[1:], strict=False):
        assert SECOND <= start["at"] - failure["at"] < 3 * SECOND
    assert [log_of(system, run, n) for n in (1, 2, 3)] == [f"attempt {n}\n" for n in (1, 2, 3)]


def test_a_run_is_retried_as_its_policy_says(system: System) -> None:
    grows = {"backoff": "exponential", "factor": 3, "exitCodes": [7]}
    last = "[ $PUNCTUAL_ATTEMPT = 3 ] && exit 8; exit 7"
    (growing,) = system.create_jobs(
        body("growing", last, "now", retries=9, retryDelay="500ms", retryPolicy=grows)
    )
    limited = {"maxElapsed": "1s"}
    (soon,) = system.create_jobs(
        body("limited", "exit 3", "now", retries=9, retryDelay="700ms", retryPolicy=limited)
    )
    (run,) = system.wait_all_terminal([growing], 1)
    assert (run["state"], run["exit_code"], run["attempt"]) == ("Completed Abnormally", 8, 3)
    assert "not tried again: its retry policy retries only after exit code 7" in run["message"]
    system.wait_for(lambda: len(system.events(run["id"])) == 11, "eleven events")
    failed, started = (
        [event["at"] for event in system.events(run["id"]) if event["type"] == kind]
        for kind in ("JOB_FAILED", "JOB_STARTED")
    )
    assert started[1] - failed[0] >= SECOND / 2
    assert started[2] - failed[1] >= 3 * SECOND / 2
    (other,) = system.wait_all_terminal([soon], 1)
    assert other["attempt"] < 3
    assert "not tried again: its retries end 1s after its first start" in other["message"]


def test_templates_parameters_and_context_reach_the_program(system: System) -> None:
    (job,) = system.create_jobs(
        body(
            "context",
            "echo {{ ds }} {{ job }} {{ attempt }} {{ execution_id }} {{ params.table }} $PARAM_DAY $PARAM_N;"
            ' echo "$PUNCTUAL_PARAMETERS"',
            "now",
            parameters={"day": "{{ ds }}", "n": 5, "table": "sales"},
        )
    )
    (run,) = system.wait_all_terminal([job], 1)
    day = run["scheduled_for"].strftime("%Y-%m-%d")
    assert log_of(system, run, 1) == (
        f"{day} context 1 {run['id']} sales {day} 5\n" + f'{{"day": "{day}", "n": 5, "table": "sales"}}\n'
    )


def test_an_undefined_name_fails_the_run_once_with_a_clear_reason(system: System) -> None:
    (job,) = system.create_jobs(body("undefined", "echo {{ nope }}", "now", retries=3, retryDelay="1s"))
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["reason"], run["attempt"]) == ("Completed Abnormally", "template_error", 1)
    assert "nope" in run["message"]


def test_a_time_limit_ends_a_run(system: System) -> None:
    (job,) = system.create_jobs(body("slow", "sleep 600", "now", timeout="1s"))
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["reason"]) == ("Completed Abnormally", "timed_out")
    assert SECOND <= run["finished_at"] - run["started_at"] < 6 * SECOND


def test_a_recurring_job_goes_on_from_the_planned_time(system: System) -> None:
    (job,) = system.create_jobs(body("recurring", "true", {"every": "1s"}))

    def three_in_time() -> bool:
        rows = [row for row in system.executions(job) if row["state"] == "Completed Normally"]
        return len([row for row in rows if row["started_at"] - row["scheduled_for"] < SECOND]) >= 3

    system.wait_for(three_in_time, "three runs began within a second and ended")
    planned = [row["scheduled_for"] for row in system.executions(job)]
    assert all((later - earlier) % SECOND == timedelta(0) for earlier, later in pairwise(planned))
    system.console.run("from jobs.models import Job; Job.objects.filter(id=job).delete()", job=job)


def test_a_running_run_is_cancelled_and_its_process_is_gone(system: System, tmp_path: Path) -> None:
    mark = tmp_path / "pid"
    (job,) = system.create_jobs(body("cancelled", f"echo $$ > {mark}; exec sleep 600", "now", retries=3))
    system.wait_for(lambda: mark.exists() and mark.read_text().strip(), "the run is under way")
    run = system.wait_for(
        lambda: [row for row in system.executions(job) if row["state"] == "Active"], "the row is Active"
    )[0]
    cancel(system, run)
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["reason"], run["attempt"]) == ("Cancelled", "user", 1)
    assert not Path(f"/proc/{mark.read_text().strip()}").exists()


def test_a_waiting_run_is_cancelled_and_does_not_start(system: System, tmp_path: Path) -> None:
    mark = tmp_path / "ran"
    job, later = system.create_jobs(
        body("unwanted", f"touch {mark}", {"after": "5s"}), body("after it", "true", {"after": "6s"})
    )
    (run,) = system.executions(job)
    cancel(system, run)
    system.wait_all_terminal([later], 1)
    (run,) = system.executions(job)
    assert (run["state"], run["reason"]) == ("Cancelled", "user")
    assert not mark.exists()


def test_a_run_is_cancelled_that_has_begun_while_nobody_recorded_it(system: System, tmp_path: Path) -> None:
    mark, ended = tmp_path / "runs", tmp_path / "ended"
    (recorder,) = [found for found in system.processes if found.kind == "recorder" and found.alive]
    recorder.signal(signal.SIGSTOP)
    try:
        stops = f"trap 'sleep 0.5; touch {ended}; exit 7' TERM; touch {mark}; while :; do sleep 0.1; done"
        (job,) = system.create_jobs(body("begun unseen", stops, "now"))
        system.wait_for(mark.exists, "the run is under way")
        (run,) = system.executions(job)
        assert cancel(system, run) == "requested"
        (run,) = system.executions(job)
        assert (run["state"], run["finished_at"]) == ("Waiting", None)
        system.wait_for(ended.exists, "the run has heard of it")
    finally:
        recorder.signal(signal.SIGCONT)
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["reason"], run["exit_code"]) == ("Cancelled", "user", 7)
    assert run["started_at"] < run["cancel_requested_at"] < run["finished_at"]
    last = ["JOB_STARTED", "JOB_CANCELLED"]
    system.wait_for(
        lambda: [event["type"] for event in system.events(run["id"])][-2:] == last, "its history is whole"
    )


def cancel(system: System, execution: dict[str, Any]) -> str:
    answer = system.console.run(
        "from uuid import UUID; from executions.services import cancel_execution;"
        "from access.policy import System; from scheduler_project.kernel.clock import utcnow;"
        "result = str(cancel_execution(UUID(execution), System('tests'), utcnow()))",
        execution=str(execution["id"]),
    )
    return str(answer)


def test_a_command_that_kills_its_own_group_has_failed_and_is_not_started_again(system: System) -> None:
    jobs = system.create_jobs(
        body("kill-group", "kill -9 0", "now"), body("kill-parent", "kill -9 $PPID", "now")
    )
    runs = system.wait_all_terminal(jobs, 2)
    assert [(run["reason"], run["exit_code"], run["attempt"]) for run in runs] == [("failed", 137, 1)] * 2


def test_an_image_that_plain_processes_cannot_run_is_said(system: System) -> None:
    (job,) = system.create_jobs(body("image", "", "now", type="Container", image="nginx:1"))
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["reason"]) == ("Completed Abnormally", "start_failed")
    assert "'nginx:1'" in run["message"]
    assert "PUNCTUAL_RUNTIME=docker" in run["message"]


def test_bombs_of_templates_end_and_leave_the_worker_as_it_was(system: System) -> None:
    (worker,) = [process for process in system.processes if process.name.startswith("worker")]
    before = most_memory(worker.pid)
    bombs = [
        BOMBS[name] for name in ("times", "loops", "macros", "shared lists", "kept texts", "round", "adding")
    ]
    jobs = system.create_jobs(
        *(
            body(f"bomb-{number}", bomb, "now", parameters={"big": "x" * 60_000}, retries=3, retryDelay="0s")
            for number, bomb in enumerate(bombs)
        )
    )
    runs = system.wait_all_terminal(jobs, len(bombs))
    assert [(run["reason"], run["attempt"]) for run in runs] == [("template_error", 1)] * len(bombs)
    assert max(run["finished_at"] - run["started_at"] for run in runs) < 2 * len(bombs) * SECOND
    assert most_memory(worker.pid) - before < 60_000
    (job,) = system.create_jobs(body("after-bombs", "true", "now"))
    (run,) = system.wait_all_terminal([job], 1)
    assert run["state"] == "Completed Normally"


def most_memory(pid: int) -> int:
    """The most that a process has had, in kB."""
    status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8")
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmHWM:"))
