"""An outage of every beat: afterwards the misfire policy holds, and what is due now is not late for it.

With PUNCTUAL_TEST_OUTAGE=hour: ten thousand minutely jobs, their fires spread over the minute, and an hour,
one policy after the other; with PUNCTUAL_TEST_OUTAGE=second the same with all due in one second of the
minute. The figures are in docs/performance.md. Otherwise the same with fewer jobs and shorter intervals. What
stands for the workers is said in tests/outage.py.

Late is what is between the planned time and the worker; of ten thousand in one second it is what is between
the planned time and the broker's confirm, since the workers' share of the machine would be measured instead.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from scheduler_project.kernel.clock import monotonic, utcnow
from tests.outage import Answers, Outage
from tests.system import Process, System, running_system

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
SECOND_OF_THE_MINUTE = replace(HOUR, spread=1)
WANTED = os.environ.get("PUNCTUAL_TEST_OUTAGE", "")
FULL = bool(WANTED)
SIZE = {"": SMALL, "hour": HOUR, "second": SECOND_OF_THE_MINUTE}[WANTED]
TOGETHER = [("none",), ("latest",), ("all",)] if FULL else [("none", "latest", "all")]

# What was skipped behind the latest run that has ended is followed by one that has not.
MISSED = """
WITH e AS (
    SELECT *, max(scheduled_for) FILTER (WHERE trigger = 'schedule' AND exit_code = 0)
              OVER (PARTITION BY job_id) AS latest_ended
    FROM executions_execution
)
SELECT split_part(j.name, ' ', 1) AS policy, j.name,
       count(*) FILTER (WHERE e.trigger = 'catchup') AS caught_up,
       count(*) FILTER (WHERE e.trigger = 'catchup' AND e.finished_at IS NULL) AS waiting,
       coalesce(sum(e.missed) FILTER (WHERE e.reason = 'skipped_misfire'), 0) AS skipped,
       count(*) FILTER (WHERE e.reason = 'skipped_overlap' AND scheduled_for < latest_ended) AS overlapped,
       count(*) FILTER (WHERE e.reason = 'skipped_overlap') AS overlapped_in_all,
       min(e.scheduled_for) FILTER (WHERE e.trigger = 'schedule' AND e.state <> 'Cancelled') AS went_on,
       max(e.scheduled_for) FILTER (WHERE e.trigger = 'schedule' AND e.exit_code = 0) AS latest,
       count(*) FILTER (WHERE e.trigger = 'schedule' AND e.exit_code = 0) AS regular
FROM e JOIN jobs_job j ON j.id = e.job_id
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


_SENT = re.compile(r"^(\S+Z) \w+ beat\.dispatcher runs_sent runs=(\d+)", re.MULTILINE)


def confirmed_late(system: System, since: datetime, until: datetime) -> list[timedelta]:
    """Of each fire of all jobs at once in [since, until): when the beat's log has so many confirmed.

    What catches up is confirmed beside it and counted too: a hundred a second, so it is not far off.
    """
    lines = [(datetime.fromisoformat(at), int(runs)) for at, runs in _SENT.findall(beat_of(system).text())]
    found, fire = [], next_fire(SIZE, since)
    while fire + SIZE.interval <= until:
        left = SIZE.jobs
        for at, runs in lines:
            left -= runs if fire <= at < fire + SIZE.interval else 0
            if left <= 0:
                found.append(at - fire)
                break
        fire += SIZE.interval
    return found


def beat_of(system: System) -> Process:
    return next(process for process in system.processes if process.kind == "beat")


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
        confirmed = confirmed_late(system, settled_at, utcnow()) if WANTED == "second" else []
        late = answers.late(settled_at, utcnow() - 2 * SECOND)
        rows = system.query(MISSED)
        what = "drained in" if drained else "watched for"
        figures = (
            f"{policies}: settled in {settling_s:.1f} s, {what} {draining_s:.1f} s,"
            f" {len(answers.taken)} runs, {len(late)} of them on time: late at most"
            f" {max(late).total_seconds() * 1000:.0f} ms"
            + "".join(f", all confirmed after {at.total_seconds():.2f} s" for at in confirmed)
        )
    print(figures)  # noqa: T201 -- what was measured, for docs/performance.md (pytest -s)
    assert len(rows) == len(policies) * SIZE.jobs
    for row in rows:
        what = ", ".join(f"{name}={value}" for name, value in row.items())
        missed = (row["went_on"] - outage.first) // SIZE.interval
        assert row["went_on"] > up_at - SIZE.interval - timedelta(minutes=1), what
        assert missed >= SIZE.fires - 2, what  # the last one or two were just late
        expected = {"all": missed, "latest": 1, "none": 0}[row["policy"]]
        # What was just late when the rest was settled may have become a miss of its own since.
        again = row["policy"] == "latest" and row["caught_up"] == 2
        assert row["skipped"] == missed - expected - again, what
        assert row["caught_up"] == expected + again or (not drained and row["waiting"] == 1), what
        fires = (row["latest"] - row["went_on"]) // SIZE.interval + 1
        assert fires == row["regular"] + row["overlapped"], what
    assert len(late) >= len(rows)
    assert max(confirmed if WANTED == "second" else late) < SECOND, figures
