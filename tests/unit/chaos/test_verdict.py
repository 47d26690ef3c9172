"""What counts as lost, and how it is told."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from scheduler_project.chaos.course import Report
from scheduler_project.chaos.ledger import Key, Seen
from scheduler_project.chaos.plan import make_plan
from scheduler_project.chaos.report import as_json, as_lines
from scheduler_project.chaos.verdict import Verdict, judge, longest_gap_s, sendings

AT = datetime(2026, 12, 1, 2, tzinfo=UTC)
SECOND = timedelta(seconds=1)
KEY: Key = ("steady-1", AT)
WHOLE = Seen([AT + SECOND], [1], 1)
ROW = {"state": "Completed Normally"}


def judged(seen: Seen | None, row: dict[str, Any] | None, key: Key = KEY) -> Verdict:
    return judge([KEY], {key: seen} if seen else {}, {key: row} if row else {})


def test_a_run_that_began_ended_and_is_known_to_have_is_not_lost() -> None:
    verdict = judged(WHOLE, ROW)
    assert (verdict.due, verdict.started, verdict.finished, verdict.lost) == (1, 1, 1, [])
    assert verdict.latest_start_s == 1.0
    assert verdict.holds


@pytest.mark.parametrize(
    ("seen", "row", "started"),
    [
        (None, None, 0),
        (None, ROW, 0),
        (Seen([AT], [1], 0), ROW, 1),
        (WHOLE, None, 1),
        (WHOLE, {"state": "Active"}, 1),
        (WHOLE, {"state": "Completed Abnormally"}, 1),
    ],
    ids=["never was", "only said", "did not end", "has no row", "has not ended", "has failed"],
)
def test_a_run_is_lost_where_either_side_does_not_know_its_end(
    seen: Seen | None, row: dict[str, Any] | None, started: int
) -> None:
    verdict = judged(seen, row)
    assert (verdict.started, verdict.finished, verdict.lost) == (started, 0, [KEY])
    assert not verdict.holds


def test_one_that_nobody_planned_is_found() -> None:
    other: Key = ("steady-1", AT + SECOND)
    verdict = judged(WHOLE, ROW, other)
    assert (verdict.not_due, verdict.lost, verdict.holds) == ([other], [KEY], False)


@pytest.mark.parametrize(("attempts", "by_loss"), [([1, 2], 1), ([1, 1], 0)])
def test_two_starts_are_told_apart_by_their_attempts(attempts: list[int], by_loss: int) -> None:
    verdict = judged(Seen([AT, AT + SECOND], attempts, 2), ROW)
    assert (verdict.started_twice, verdict.by_loss, verdict.latest_start_s) == ([KEY], by_loss, 0.0)
    assert verdict.holds, "at least once is the promise"


def test_a_gap_is_counted_while_runs_are_due() -> None:
    times = [AT + n * SECOND for n in (-50, 1, 2, 9, 10, 90)]
    assert longest_gap_s(times, AT, AT + 10 * SECOND) == 7
    assert longest_gap_s([], AT, AT) == 0


def test_a_beats_log_says_when_it_sent() -> None:
    log = (
        "2026-12-01T02:00:01.250Z INFO beat.dispatcher runs_sent runs=3 refused=0\n"
        "2026-12-01T02:00:02.000Z INFO beat.ownership shards_changed\n"
    )
    assert list(sendings([log, log])) == [AT + timedelta(seconds=1.25)] * 2


def report(verdict: Verdict) -> Report:
    gaps = {"beat": 2.04, "PostgreSQL": 7.5}
    return Report(make_plan(5, 50, 15), verdict, gaps, {"kill beat": 1}, ["worker1"], [])


def test_json_is_one_object_with_what_was_asked() -> None:
    told = json.loads(as_json(report(judged(WHOLE, ROW))))
    assert {
        name: told[name]
        for name in ("seed", "due", "started", "finished", "lost", "started_twice", "latest_start_s")
    } == {
        "seed": 5,
        "due": 1,
        "started": 1,
        "finished": 1,
        "lost": 0,
        "started_twice": 0,
        "latest_start_s": 1.0,
    }
    assert told["longest_gap_s"] == {"beat": 2.0, "PostgreSQL": 7.5}


def test_people_are_told_the_same() -> None:
    twice = judged(Seen([AT, AT + SECOND], [1, 2], 2), ROW)
    text = "\n".join(as_lines(report(replace(twice, lost=[KEY], not_due=[KEY]))))
    for line in (
        "seed           5",
        "lost           1",
        "started twice  1 (100.000%): 1 as a later attempt, 0 as the same attempt",
        "longest gap    beat 2.0 s, PostgreSQL 7.5 s",
        "not due        1 run that nobody planned",
        "ended          by themselves, and started again: worker1",
    ):
        assert line in text
