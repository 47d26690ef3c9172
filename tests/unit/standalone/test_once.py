"""The demo's verdict and its table."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from scheduler_project.standalone.once import DemoRun, is_shown, missing_text, shown_runs, table

DUE = datetime(2026, 11, 30, 4, 0, tzinfo=UTC)
JOBS = {"etl": None, "flaky": 3}


def run(job="etl", state="Completed Normally", attempts=1, after_s=0.0, exit_code=0, started=True):
    due = DUE + timedelta(seconds=after_s)
    start = due + timedelta(milliseconds=12) if started else None
    return DemoRun(
        job=job,
        state=state,
        attempts=attempts,
        due=due,
        started_at=start,
        finished_at=start + timedelta(seconds=1.5) if start else None,
        exit_code=exit_code,
    )


def test_a_job_has_shown_itself_when_a_run_completed_normally():
    assert is_shown(run(), None)
    assert not is_shown(run(state="Active"), None)
    assert not is_shown(run(state="Completed Abnormally", exit_code=1), None)


def test_the_failing_job_has_shown_itself_when_it_has_used_all_its_attempts():
    assert is_shown(run(state="Completed Abnormally", attempts=3, exit_code=3), 3)
    assert not is_shown(run(state="Completed Abnormally", attempts=2, exit_code=3), 3)
    assert not is_shown(run(state="Completed Normally", attempts=1), 3)


def test_of_several_runs_the_first_that_ended_as_it_should_counts():
    runs = [run(after_s=20), run(after_s=10), run(state="Completed Abnormally"), run(job="other")]
    assert shown_runs(runs, JOBS) == {"etl": runs[1]}


def test_what_is_missing_is_named_with_its_state():
    runs = [run(state="Active", exit_code=None)]
    assert missing_text(runs, JOBS) == "etl: Active (attempt 1); flaky: no run"
    later = run(after_s=60, state="Waiting", started=False, exit_code=None)
    assert missing_text([*runs, later], JOBS) == missing_text(runs, JOBS)
    failed = [*runs, run(job="flaky", state="Waiting", attempts=2, exit_code=3)]
    assert missing_text(failed, JOBS).endswith("flaky: Waiting (attempt 2, exit code 3)")


def test_the_table_has_a_line_a_run_with_lateness_and_duration():
    lines = table([run(), run(job="flaky", started=False, exit_code=None)])
    assert lines[0].split()[:3] == ["job", "status", "attempts"]
    assert lines[1].split() == (
        ["etl", "Completed", "Normally", "1", "04:00:00.000", "04:00:00.012", "0.012", "s", "1.500", "s", "0"]
    )
    assert lines[2].split() == ["flaky", "Completed", "Normally", "1", "04:00:00.000", "-", "-", "-", "-"]
