"""An outage of every beat: afterwards the misfire policy holds, and what is due now is not late for it.

With PUNCTUAL_TEST_OUTAGE=hour: ten thousand minutely jobs and one hour, one policy after the other; the
figures are in docs/performance.md. Otherwise the same with fewer jobs and shorter intervals. What stands
for the workers is said in tests/outage.py.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler_project.kernel.clock import monotonic, utcnow
from tests.outage import Answers, Outage
from tests.system import System, running_system

SECOND = timedelta(seconds=1)


@dataclass(frozen=True, slots=True)
class Size:
    """``interval`` of the jobs' schedule ``cron``; ``fires``: how many passed.

    ``clear_s``: how long before the next fire the beat is started. ``watch_s``: for how long it is watched
    where all of it would take longer; otherwise until it has drained. ``spread``: over how many seconds of
    the minute the jobs are due: ten thousand in one second is another measurement.
    """

    jobs: int
    cron: str
    interval: timedelta
    fires: int
    rate: int
    active: int
    grace: str
    clear_s: float
    spread: int = 1
    watch_s: float | None = None


SMALL = Size(100, "*/10 * * * * *", 10 * SECOND, 18, 500, 100, "5s", 6.0)
HOUR = Size(10_000, "{second} * * * * *", 60 * SECOND, 60, 100, 100, "1m", 0.0, 60, 120.0)
FULL = os.environ.get("PUNCTUAL_TEST_OUTAGE") == "hour"
SIZE = HOUR if FULL else SMALL
TOGETHER = [("none",), ("latest",), ("all",)] if FULL else [("none", "latest", "all")]

MISSED = """
SELECT split_part(j.name, ' ', 1) AS policy, j.name,
       count(*) FILTER (WHERE e.trigger = 'catchup') AS caught_up,
       count(*) FILTER (WHERE e.trigger = 'catchup' AND e.finished_at IS NULL) AS waiting,
       coalesce(sum(e.missed) FILTER (WHERE e.reason = 'skipped_misfire'), 0) AS skipped,
       count(*) FILTER (WHERE e.reason = 'skipped_overlap') AS overlapped,
       min(e.scheduled_for) FILTER (WHERE e.trigger = 'schedule' AND e.state <> 'Cancelled') AS went_on,
       max(e.scheduled_for) FILTER (WHERE e.trigger = 'schedule' AND e.exit_code = 0) AS latest,
       count(*) FILTER (WHERE e.trigger = 'schedule' AND e.exit_code = 0) AS regular
FROM executions_execution e JOIN jobs_job j ON j.id = e.job_id
GROUP BY j.name
"""
UNSETTLED = """
SELECT count(*) AS runs FROM executions_execution
WHERE state = 'Waiting' AND queued_at IS NULL AND check_at < now() - interval '1 second'
"""
DRAINED = """
SELECT count(*) AS runs FROM executions_execution WHERE trigger = 'catchup' AND finished_at IS NULL
"""


def next_fire(size: Size, now: datetime) -> datetime:
    midnight = now.replace(hour=0, minute=0, second=0, microsecond=0)
    return midnight + ((now - midnight) // size.interval + 1) * size.interval


def wait_for_room(size: Size) -> None:
    """Until the next fire is far enough away for the beat to be up before it."""
    while (left := (next_fire(size, utcnow()) - utcnow()).total_seconds()) < size.clear_s:
        time.sleep(left)


@contextmanager
def after_an_outage(
    home: Path, size: Size, policies: tuple[str, ...]
) -> Iterator[tuple[System, Answers, Outage]]:
    env = {
        "PUNCTUAL_MISFIRE_GRACE": size.grace,
        "PUNCTUAL_CATCHUP_RATE": str(size.rate),
        "PUNCTUAL_CATCHUP_ACTIVE": str(size.active),
    }
    with running_system(home, **env) as system:
        system.start_all("recorder recorder" if FULL else "recorder")
        first = next_fire(size, utcnow()) - size.fires * size.interval
        outage = Outage(policies, size.jobs, size.cron, first, size.spread)
        outage.leave_behind(system)
        with Answers(system.env["BROKER_URL"]) as answers:
            system.wait_until_ready()
            wait_for_room(size)
            system.start("beat")
            system.wait_until_ready()
            yield system, answers, outage


def caught_up(system: System) -> bool:
    return bool(system.query(DRAINED)[0]["runs"] == 0)


def watched(since: datetime) -> bool:
    return SIZE.watch_s is not None and utcnow() > since + SIZE.watch_s * SECOND


def timed(wait: Callable[[], Any]) -> float:
    since = monotonic()
    wait()
    return monotonic() - since


@pytest.mark.timeout(900 if FULL else 120)
@pytest.mark.parametrize("policies", TOGETHER, ids="-".join)
def test_after_an_outage_the_policy_holds_and_nothing_due_is_late(
    policies: tuple[str, ...], tmp_path: Path
) -> None:
    with after_an_outage(tmp_path, SIZE, policies) as (system, answers, outage):
        up_at = utcnow()
        settling_s = timed(
            lambda: system.wait_for(lambda: system.query(UNSETTLED)[0]["runs"] == 0, "settled", 120.0)
        )
        settled_at = utcnow()
        draining_s = timed(
            lambda: system.wait_for(
                lambda: (
                    (caught_up(system) and utcnow() > settled_at + 2 * SIZE.interval) or watched(settled_at)
                ),
                "caught up",
                600.0,
            )
        )
        drained = caught_up(system)
        late = answers.late(settled_at, utcnow() - 2 * SECOND)
        rows = system.query(MISSED)
        what = "drained in" if drained else "watched for"
        figures = (
            f"{policies}: settled in {settling_s:.1f} s, {what} {draining_s:.1f} s,"
            f" {len(answers.taken)} runs, {len(late)} of them on time: late at most"
            f" {max(late).total_seconds() * 1000:.0f} ms"
        )
    print(figures)  # noqa: T201 -- what was measured, for docs/performance.md (pytest -s)
    assert len(rows) == len(policies) * SIZE.jobs
    for row in rows:
        missed = (row["went_on"] - outage.first) // SIZE.interval
        assert row["went_on"] > up_at - SIZE.interval - timedelta(minutes=1), row
        assert missed >= SIZE.fires - 2, row  # the last one or two were just late
        expected = {"all": missed, "latest": 1, "none": 0}[row["policy"]]
        assert row["skipped"] == missed - expected, row
        assert row["caught_up"] == expected or (not drained and row["waiting"] == 1), row
        assert (row["latest"] - row["went_on"]) // SIZE.interval + 1 == row["regular"] + row["overlapped"], (
            row
        )
    assert len(late) >= len(rows)
    assert max(late) < SECOND, figures
