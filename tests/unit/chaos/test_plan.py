"""What a chaos intends, and what Punctual reads of it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from jobs.definitions import read_definition
from scheduler_project.chaos.plan import EACH, KINDS, SERVERS, Act, Fault, make_plan

FIRST = datetime(2026, 12, 1, 2, tzinfo=UTC)


def test_a_seed_repeats_its_plan_and_another_has_another() -> None:
    assert make_plan(7, 2000, 60) == make_plan(7, 2000, 60)
    assert make_plan(7, 2000, 60).faults != make_plan(8, 2000, 60).faults
    assert make_plan(7, 2000, 60).jobs != make_plan(8, 2000, 60).jobs


def test_a_longer_one_begins_with_the_same_faults() -> None:
    short, long = make_plan(7, 2000, 60).faults, make_plan(7, 9000, 600).faults
    assert len(short) > 10
    assert long[: len(short)] == short


@pytest.mark.parametrize(("runs", "lasts_s"), [(50, 15), (200, 20), (2000, 60), (20_000, 300)])
def test_there_are_as_many_runs_as_were_asked_for_each_at_a_time_of_its_own(
    runs: int, lasts_s: float
) -> None:
    plan = make_plan(3, runs, lasts_s)
    due = plan.due(FIRST)
    assert plan.runs == len(due) == runs
    end = FIRST + timedelta(seconds=lasts_s)
    assert all(FIRST <= at <= end for _, at in due)
    assert len(plan.jobs) < 100 + runs / 2, "most of them recur"


def test_it_is_steady_and_has_spikes() -> None:
    due = make_plan(3, 2000, 60).due(FIRST)
    spikes = {at for name, at in due if name.startswith("spike")}
    assert len(spikes) == 4
    steady = [at for name, at in due if name.startswith("steady")]
    in_each_second = {int((at - FIRST).total_seconds()) for at in steady}
    assert len(in_each_second) >= 58


def test_every_fault_comes_before_any_comes_again() -> None:
    kinds = [(fault.act, fault.target) for fault in make_plan(3, 2000, 300).faults]
    everything = 2 * len(KINDS) + 3 * len(SERVERS)
    assert len(set(kinds[:everything])) == everything
    assert len(set(kinds[everything : 2 * everything])) == everything


def test_a_fault_is_bounded_and_hits_who_is_there() -> None:
    for fault in make_plan(5, 2000, 3000).faults:
        assert fault.lasts_s <= 12
        assert set(fault.which) <= set(range(EACH))
        assert bool(fault.which) == (fault.target in KINDS)
        assert (fault.lasts_s > 0) == (fault.act is not Act.CUT) or fault.act is Act.KILL


def test_a_fault_says_what_happens() -> None:
    assert str(Fault(3.0, Act.STOP, "beat", (0, 1), 2.5)) == "    3.0 s  stop beat 1 and 2 for 2.5 s"
    half = Fault(12.25, Act.CUT, "Redis", share=0.5)
    assert str(half) == "   12.2 s  cut Redis, 50% of the connections"


def test_punctual_reads_the_very_times_that_are_counted() -> None:
    for job in make_plan(11, 300, 40).jobs:
        schedule = read_definition(job.body(FIRST, "true")).schedule
        fires: list[datetime] = []
        while (fire := schedule.next_fire(fires[-1] if fires else FIRST - timedelta(seconds=1))) is not None:
            fires.append(fire)
        assert fires == list(job.due(FIRST)), job
