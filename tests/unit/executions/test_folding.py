from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from executions.events import Event
from executions.folding import LOST_LIMIT, Context, Run, Timing, fold
from executions.retry_policies import RetryPolicy
from executions.states import TERMINAL, EventType, State

NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
S = timedelta(seconds=1)
ID = UUID("019ad27d-3400-7003-8000-000000000001")
TIMING = Timing(enqueue_timeout=300 * S, lease_check=10 * S)
NEW = Run(ID, State.WAITING, check_at=NOW)


def context(retries: int = 0, delay: timedelta = 60 * S) -> Context:
    return Context(RetryPolicy(retries, delay), TIMING, NOW)


def event(kind: EventType, attempt: int = 1, after: int = 0, **fields: Any) -> Event:
    return Event(type=kind, execution_id=ID, attempt=attempt, at=NOW + after * S, **fields)


def attempt_events(number: int, outcome: EventType, *, retryable: bool = True) -> list[Event]:
    """What is said of one attempt, as beat and worker say it."""
    queued, started, ended = (NOW + (10 * number + n) * S for n in (0, 1, 5))
    code = {EventType.COMPLETED: 0, EventType.FAILED: 3}.get(outcome)
    common: dict[str, Any] = {
        "execution_id": ID,
        "attempt": number,
        "worker": f"w{number}",
        "queued_at": queued,
    }
    return [
        Event(type=EventType.QUEUED, execution_id=ID, attempt=number, at=queued),
        Event(type=EventType.STARTED, at=started, **common),
        Event(
            type=outcome,
            at=ended,
            started_at=started,
            reason=outcome.lower(),
            message=f"attempt {number}",
            exit_code=code,
            retryable=retryable,
            **common,
        ),
    ]


@st.composite
def histories(draw: st.DrawFn) -> tuple[int, list[list[Event]]]:
    """The retries of a policy and the events of each attempt of one run until its end."""
    failed = draw(st.integers(0, 3))
    lost = draw(st.integers(0, LOST_LIMIT))
    before = draw(st.permutations([EventType.FAILED] * failed + [EventType.LOST] * lost))
    ends = [EventType.COMPLETED, EventType.CANCELLED, EventType.FAILED]
    last = draw(st.sampled_from([*ends, EventType.LOST] if lost == LOST_LIMIT else ends))
    retryable = draw(st.booleans())
    more = 0 if last is EventType.FAILED and retryable else draw(st.integers(0, 2))
    attempts = [attempt_events(number, kind) for number, kind in enumerate(before, 1)]
    return failed + more, [*attempts, attempt_events(len(before) + 1, last, retryable=retryable)]


@st.composite
def deliveries(draw: st.DrawFn) -> tuple[int, list[Event], list[Event]]:
    """A history in order, and one of the orders in which it may arrive, with duplicates.

    An attempt follows only on the recorded outcome of the one before; all else of an attempt may
    come at any time after that, even when later attempts have run.
    """
    retries, attempts = draw(histories())
    phases: list[list[Event]] = [[] for _ in attempts]
    for number, events in enumerate(attempts):
        phases[number].append(events[-1])
        for said in events:
            copies = draw(st.integers(0 if said is events[-1] else 1, 2))
            for _ in range(copies):
                phases[draw(st.integers(number, len(attempts) - 1))].append(said)
    arrived = [said for phase in phases for said in draw(st.permutations(phase))]
    return retries, [said for events in attempts for said in events], arrived


@settings(max_examples=300)
@given(deliveries())
def test_any_order_and_any_duplication_give_the_row_of_the_true_order(
    case: tuple[int, list[Event], list[Event]],
) -> None:
    retries, in_order, arrived = case
    expected, said = fold(NEW, in_order, context(retries))
    row, said_again = fold(NEW, arrived, context(retries))
    assert expected.state in TERMINAL
    assert row == expected
    assert {follow_up.id for follow_up in said_again} == {follow_up.id for follow_up in said}
    assert fold(row, arrived, context(retries)) == (row, [])


@given(deliveries(), st.integers(0, 40))
def test_how_the_events_are_cut_into_batches_does_not_count(
    case: tuple[int, list[Event], list[Event]], cut: int
) -> None:
    retries, _, arrived = case
    half, first = fold(NEW, arrived[:cut], context(retries))
    whole, second = fold(half, arrived[cut:], context(retries))
    assert (whole, first + second) == fold(NEW, arrived, context(retries))


def test_a_run_in_order_step_by_step() -> None:
    queued, started, completed = attempt_events(1, EventType.COMPLETED)
    row, _ = fold(NEW, [queued], context())
    assert (row.state, row.queued_at, row.check_at) == (State.WAITING, queued.at, NOW + 300 * S)
    row, _ = fold(row, [started], context())
    assert (row.state, row.started_at, row.worker, row.check_at) == (
        State.ACTIVE,
        started.at,
        "w1",
        NOW + 10 * S,
    )
    row, more = fold(row, [completed], context())
    assert (row.state, row.finished_at, row.exit_code) == (State.COMPLETED_NORMALLY, completed.at, 0)
    assert (row.check_at, row.attempt, more) == (None, 1, [])


@pytest.mark.parametrize("kind", [kind for kind in EventType if kind is not EventType.RETRYING])
def test_the_attempt_fences(kind: EventType) -> None:
    active = replace(NEW, state=State.ACTIVE, attempt=2, started_at=NOW, worker="w2")
    for attempt in (1, 3):
        assert fold(active, [event(kind, attempt)], context(5)) == (active, [])


@pytest.mark.parametrize("retries", [0, 1, 2, 100])
def test_failures_are_tried_again_as_often_as_the_policy_says(retries: int) -> None:
    row, follow_ups = NEW, []
    for attempt in range(1, retries + 2):
        assert row.state is State.WAITING
        row, more = fold(row, attempt_events(attempt, EventType.FAILED), context(retries))
        follow_ups += more
    assert (row.state, row.attempt, row.failures) == (State.COMPLETED_ABNORMALLY, retries + 1, retries + 1)
    assert (row.exit_code, row.check_at) == (3, None)
    assert [said.attempt for said in follow_ups] == list(range(2, retries + 2))


def test_a_retry_waits_for_its_delay_and_says_so() -> None:
    row, (said,) = fold(NEW, attempt_events(1, EventType.FAILED), context(1, 90 * S))
    assert (row.state, row.attempt, row.check_at) == (State.WAITING, 2, NOW + 90 * S)
    assert (row.queued_at, row.finished_at, row.reason) == (None, None, "job_failed")
    assert (said.type, said.attempt, said.reason) == (EventType.RETRYING, 2, "job_failed")
    assert "2026-11-30T02:01:30" in said.message


def test_losses_have_a_budget_of_their_own_and_start_again_at_once() -> None:
    row = NEW
    for attempt in range(1, LOST_LIMIT + 1):
        row, _ = fold(row, attempt_events(attempt, EventType.LOST), context(0, 90 * S))
        assert (row.state, row.check_at, row.losses, row.failures) == (State.WAITING, NOW, attempt, 0)
    row, more = fold(row, attempt_events(LOST_LIMIT + 1, EventType.LOST), context(0))
    assert LOST_LIMIT == 3
    assert (row.state, row.losses, row.attempt, more) == (State.COMPLETED_ABNORMALLY, 4, 4, [])


def test_losses_use_up_no_retry() -> None:
    events = [*attempt_events(1, EventType.LOST), *attempt_events(2, EventType.FAILED)]
    row, _ = fold(NEW, events, context(1))
    assert (row.state, row.attempt, row.failures, row.losses) == (State.WAITING, 3, 1, 1)


def test_what_another_attempt_cannot_heal_is_not_tried_again() -> None:
    row, more = fold(NEW, attempt_events(1, EventType.FAILED, retryable=False), context(5))
    assert (row.state, row.attempt, more) == (State.COMPLETED_ABNORMALLY, 1, [])


def test_a_run_that_was_asked_to_stop_is_not_tried_again() -> None:
    active = replace(NEW, state=State.ACTIVE, started_at=NOW, cancel_requested=True)
    row, more = fold(active, attempt_events(1, EventType.FAILED)[-1:], context(5))
    assert (row.state, row.attempt, more) == (State.COMPLETED_ABNORMALLY, 1, [])


def test_a_run_that_was_asked_to_stop_and_then_lost_is_cancelled() -> None:
    active = replace(NEW, state=State.ACTIVE, started_at=NOW, cancel_requested=True)
    row, (said,) = fold(active, attempt_events(1, EventType.LOST)[-1:], context(5))
    assert (row.state, row.attempt, row.losses) == (State.CANCELLED, 1, 1)
    assert (said.type, said.at) == (EventType.CANCELLED, row.finished_at)


@pytest.mark.parametrize(("ago", "left"), [(20, 70), (0, 90), (100, 0), (-30, 90)])
def test_the_retry_delay_counts_from_the_failure(ago: int, left: int) -> None:
    active = replace(NEW, state=State.ACTIVE, started_at=NOW)
    row, _ = fold(active, [event(EventType.FAILED, after=-ago)], context(1, 90 * S))
    assert row.check_at == NOW + left * S


def test_an_attempt_that_runs_shows_nothing_of_the_one_that_failed() -> None:
    events = [*attempt_events(1, EventType.FAILED), *attempt_events(2, EventType.COMPLETED)[:2]]
    row, _ = fold(NEW, events, context(1))
    assert (row.state, row.reason, row.message, row.exit_code) == (State.ACTIVE, "", "", None)


@pytest.mark.parametrize("order", [1, -1])
def test_of_two_starts_and_two_sends_of_an_attempt_the_first_counts(order: int) -> None:
    sent = [event(EventType.QUEUED, after=n) for n in (1, 2)][::order]
    row, _ = fold(NEW, sent, context())
    assert row.queued_at == NOW + S
    starts = [event(EventType.STARTED, after=n, worker=f"w{n}", queued_at=NOW + S) for n in (3, 9)][::order]
    row, _ = fold(NEW, starts, context())
    assert (row.started_at, row.queued_at) == (NOW + 3 * S, NOW + S)
    row, _ = fold(row, [event(EventType.COMPLETED, after=12, worker="w9", started_at=NOW + 9 * S)], context())
    assert (row.started_at, row.worker) == (NOW + 3 * S, "w9")


def test_paused_and_resumed() -> None:
    row, _ = fold(NEW, [event(EventType.QUEUED), event(EventType.PAUSED, reason="user")], context())
    assert (row.state, row.reason, row.check_at, row.queued_at) == (State.PAUSED, "user", None, None)
    row, _ = fold(row, [event(EventType.QUEUED), event(EventType.RESUMED)], context())
    assert (row.state, row.check_at) == (State.WAITING, NOW)


def test_a_lost_run_that_was_to_stop_is_cancelled_only_where_nothing_of_it_runs() -> None:
    active = replace(NEW, state=State.ACTIVE, started_at=NOW, cancel_requested=True)
    gone, left = (event(EventType.LOST, reason="lost", gone=gone) for gone in (True, False))
    assert fold(active, [gone], context())[0].state is State.CANCELLED
    assert fold(active, [left], context())[0].state is State.COMPLETED_ABNORMALLY


def test_a_taken_up_run_has_the_same_times_in_whatever_order_its_events_come() -> None:
    first = event(EventType.STARTED)
    again = event(EventType.STARTED, after=20, started_at=NOW, reason="reattached")
    ended = event(EventType.COMPLETED, after=30, started_at=NOW)
    rows = {fold(NEW, order, context())[0].started_at for order in permutations([first, again, ended])}
    assert rows == {NOW}


def test_a_run_that_was_delivered_and_waits_says_for_what_until_it_starts() -> None:
    says: dict[str, Any] = {"reason": "pool_full", "message": "waits for a place"}
    waits, _ = fold(NEW, [event(EventType.QUEUED, after=1, **says)], context())
    assert (waits.state, waits.reason, waits.message) == (State.WAITING, "pool_full", "waits for a place")
    assert waits.check_at == NOW + 3 * TIMING.lease_check, "Redis may lose the line that it waits in"
    late, _ = fold(waits, [event(EventType.QUEUED)], context())
    assert (late.reason, late.queued_at) == ("pool_full", NOW)
    started, _ = fold(late, [event(EventType.STARTED, after=5)], context())
    assert (started.state, started.reason, started.message) == (State.ACTIVE, "", "")
    same, _ = fold(started, [event(EventType.QUEUED, after=1, **says)], context())
    assert same == started


def test_each_time_that_a_run_waits_is_a_statement_of_its_own() -> None:
    first, again = (event(EventType.QUEUED, after=n, reason="pool_full") for n in (1, 2))
    assert len({event(EventType.QUEUED).id, first.id, again.id}) == 3
