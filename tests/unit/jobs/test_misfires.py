"""Which of the fires that passed during an outage still run."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import takewhile

import pytest
from hypothesis import given
from hypothesis import strategies as st

from jobs.misfires import Block, Decision, Policy, Settlement, decide, settle_overdue, settle_since
from jobs.schedules import Schedule, count_fires, fires_after, last_fire, parse_schedule, start_of_last

T = datetime(2026, 11, 30, 2, tzinfo=UTC)
S = timedelta(seconds=1)
M = timedelta(minutes=1)
GRACE = M
MINUTELY = parse_schedule("* * * * *")
SCHEDULES = [
    parse_schedule(given)
    for given in (
        "* * * * *",
        "*/10 * * * * *",
        "0 9-17 * * 1-5",
        "*/7 2 * * *",
        {"every": "95s", "anchor": "2026-11-30T01:59:00.5Z"},
        {"every": "10s", "anchor": "2026-11-30T00:00:00Z", "end": "2026-11-30T12:00:00Z"},
    )
]


def at(minutes: float) -> datetime:
    return T + minutes * M


def settle(policy: Policy, planned: datetime, now: datetime, schedule: Schedule = MINUTELY) -> Settlement:
    return settle_overdue(schedule, planned, now, GRACE, policy)


# The run of 02:01 waits, the outage ends at 03:00:20: 02:01 to 02:59 are missed, 03:00 is just late.
END = at(60) + 20 * S


@pytest.mark.parametrize(
    ("policy", "skipped", "run"),
    [
        (Policy("latest"), Block(at(1), at(58), 58), Block(at(59), at(59), 1)),
        (Policy("all"), None, Block(at(1), at(59), 59)),
        (Policy("none"), Block(at(1), at(59), 59), None),
        (Policy("all", max_count=10), Block(at(1), at(49), 49), Block(at(50), at(59), 10)),
        (Policy("all", max_age=5 * M + 20 * S), Block(at(1), at(54), 54), Block(at(55), at(59), 5)),
        (Policy("all", max_age=5 * M + 19 * S), Block(at(1), at(55), 55), Block(at(56), at(59), 4)),
        (Policy("all", 30 * M, 3), Block(at(1), at(56), 56), Block(at(57), at(59), 3)),
        (Policy("latest", max_age=M), Block(at(1), at(59), 59), None),
        (Policy("latest", max_count=5), Block(at(1), at(58), 58), Block(at(59), at(59), 1)),
    ],
)
def test_after_an_hour(policy: Policy, skipped: Block | None, run: Block | None) -> None:
    assert settle(policy, at(1), END) == Settlement(Decision(skipped, run), at(60))


def test_where_no_fire_is_just_late_the_chain_goes_on_with_the_next() -> None:
    hourly = parse_schedule("0 * * * *")
    found = settle(Policy("latest"), T, at(150), hourly)
    assert found == Settlement(Decision(Block(T, at(60), 2), Block(at(120), at(120), 1)), at(180))


@pytest.mark.parametrize("policy", ["all", "latest", "none"])
def test_the_chain_goes_on_with_the_first_fire_that_is_just_late(policy: str) -> None:
    every_five_seconds = parse_schedule("*/5 * * * * *")
    found = settle(Policy(policy), T, at(3) + S, every_five_seconds)
    assert found.following == at(2) + 5 * S  # which is 56 s late; the grace is 60 s
    blocks = [block for block in (found.decision.skipped, found.decision.run) if block is not None]
    assert (blocks[0].first, blocks[-1].last) == (T, at(2))


def test_a_single_missed_fire_runs_by_itself() -> None:
    found = settle(Policy("latest"), T, at(30), parse_schedule("0 * * * *"))
    assert found == Settlement(Decision(None, Block(T, T, 1)), at(60))


@pytest.mark.parametrize(
    ("policy", "runs"), [("latest", True), ("all", True), ("none", False)], ids=["latest", "all", "none"]
)
def test_a_job_that_runs_once(policy: str, runs: bool) -> None:
    once = parse_schedule({"at": "2026-11-30T02:00:00Z"})
    block = Block(T, T, 1)
    decision = Decision(run=block) if runs else Decision(skipped=block)
    assert settle(Policy(policy), T, at(60), once) == Settlement(decision, None)
    assert settle(Policy(policy, max_age=M), T, at(60), once) == Settlement(Decision(skipped=block), None)


@pytest.mark.parametrize(
    ("policy", "decision"),
    [
        (Policy("all"), Decision(None, Block(at(0.5), at(3), 4))),
        (Policy("all", max_count=3), Decision(Block(at(0.5), at(0.5), 1), Block(at(1), at(3), 3))),
        (Policy("all", max_count=2), Decision(Block(at(0.5), at(1), 2), Block(at(2), at(3), 2))),
        (Policy("latest"), Decision(Block(at(0.5), at(2), 3), Block(at(3), at(3), 1))),
        (Policy("none"), Decision(Block(at(0.5), at(3), 4), None)),
    ],
)
def test_a_run_that_was_moved_counts_as_the_first(policy: Policy, decision: Decision) -> None:
    assert settle(policy, at(0.5), at(4) + S).decision == decision


def test_a_moved_run_alone() -> None:
    daily = parse_schedule("0 2 * * *")
    block = Block(at(5), at(5), 1)
    assert settle(Policy("latest"), at(5), at(60), daily).decision == Decision(run=block)
    assert settle(Policy("none"), at(5), at(60), daily).decision == Decision(skipped=block)


def test_a_schedule_that_has_ended_has_no_following() -> None:
    ending = parse_schedule({"cron": "* * * * *", "end": "2026-11-30T02:10:00Z"})
    found = settle(Policy("all"), T, at(60), ending)
    assert found == Settlement(Decision(None, Block(T, at(10), 11)), None)


policies = st.builds(
    Policy,
    st.sampled_from(["all", "latest", "none"]),
    st.none() | st.integers(1, 20_000).map(lambda s: s * S),
    st.none() | st.integers(1, 200),
)


@given(st.sampled_from(SCHEDULES), st.integers(0, 90_000), policies)
def test_every_fire_is_run_or_skipped_once_and_the_latest_are_those_that_run(
    schedule: Schedule, length_s: int, policy: Policy
) -> None:
    until = T + length_s * S
    fires = list(takewhile(lambda fire: fire <= until, fires_after(schedule, T)))
    found = decide(schedule, T, until, until, policy)
    young = [fire for fire in fires if policy.max_age is None or until - fire <= policy.max_age]
    limit = {"all": policy.max_count, "latest": 1, "none": 0}[policy.kind]
    run = young if limit is None else young[max(0, len(young) - limit) :]
    skipped = fires[: len(fires) - len(run)]
    assert found == Decision(as_block(skipped), as_block(run))


def as_block(fires: list[datetime]) -> Block | None:
    return Block(fires[0], fires[-1], len(fires)) if fires else None


@given(st.sampled_from(SCHEDULES), st.integers(0, 20), st.integers(0, 90_000), policies)
def test_the_chain_goes_on_behind_what_was_missed(
    schedule: Schedule, first: int, length_s: int, policy: Policy
) -> None:
    planned = next(fire for number, fire in enumerate(fires_after(schedule, T)) if number == first)
    now = planned + GRACE + S + length_s * S
    decision, following = (found := settle(policy, planned, now, schedule)).decision, found.following
    blocks = [block for block in (decision.skipped, decision.run) if block is not None]
    last = max(block.last for block in blocks)
    assert schedule.next_fire(last) == following
    assert blocks[0].first == planned
    assert following is None or following > now or now - following <= GRACE
    assert now - last > GRACE


@given(st.sampled_from(SCHEDULES), st.integers(0, 400), st.integers(0, 90_000), st.integers(0, 300))
def test_where_the_last_fires_begin(schedule: Schedule, early_ms: int, length_s: int, count: int) -> None:
    after, until = T - timedelta(milliseconds=early_ms), T + length_s * S
    start = start_of_last(schedule, after, until, count)
    assert after <= start <= until
    assert count_fires(schedule, start, until) == min(count, count_fires(schedule, after, until))


@given(st.sampled_from(SCHEDULES), st.integers(0, 90_000))
def test_the_last_fire(schedule: Schedule, length_s: int) -> None:
    until = T + length_s * S
    fires = list(takewhile(lambda fire: fire <= until, fires_after(schedule, T)))
    assert last_fire(schedule, T, until) == (fires[-1] if fires else None)


def test_a_year_of_seconds_is_settled_without_walking_through_it() -> None:
    every_second = parse_schedule("* * * * * *")
    year = timedelta(days=365)
    found = settle_since(every_second, T, T + year, GRACE, Policy("all", max_count=1000))
    assert found.decision.run == Block(T + year - 1060 * S, T + year - 61 * S, 1000)
    assert found.decision.skipped is not None
    assert found.decision.skipped.count == 365 * 86400 - 1061
