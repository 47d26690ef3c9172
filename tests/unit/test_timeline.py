"""How the history becomes spans of time in states."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.states import TERMINAL, EventType, State
from executions.timeline import Row, Span, in_order, seconds_in_state, spans

BORN = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass(frozen=True)
class Said:
    type: EventType
    attempt: int
    at: datetime


def said(kind: EventType, second: float, attempt: int = 1) -> Said:
    return Said(kind, attempt, BORN + timedelta(seconds=second))


def row(state: State, attempt: int = 1, **seconds: float) -> Row:
    return Row(
        state, attempt, BORN, **{name: BORN + timedelta(seconds=value) for name, value in seconds.items()}
    )


def short(found: list[Span]) -> list[tuple[str, int, float]]:
    return [(str(span.state), span.attempt, (span.since - BORN).total_seconds()) for span in found]


def test_a_run_that_has_only_been_made_waits_since_then() -> None:
    found = spans(row(State.WAITING), [])
    assert short(found) == [("Waiting", 1, 0)]
    assert seconds_in_state(found, BORN + timedelta(seconds=7)) == {"Waiting": 7}


def test_a_plain_run_waits_runs_and_ends() -> None:
    events = [said(EventType.QUEUED, 10), said(EventType.STARTED, 11), said(EventType.COMPLETED, 15)]
    found = spans(row(State.COMPLETED_NORMALLY), events)
    assert short(found) == [("Waiting", 1, 0), ("Active", 1, 11), ("Completed Normally", 1, 15)]
    assert seconds_in_state(found, BORN + timedelta(days=1)) == {"Waiting": 11, "Active": 4}
    assert found[-1].until is None


@pytest.mark.parametrize("later", [3, 5])
def test_what_a_worker_says_of_a_run_whose_end_was_reported_changes_nothing(later: float) -> None:
    events = [said(EventType.STARTED, 1), said(EventType.COMPLETED, 4), said(EventType.CANCELLED, later)]
    found = spans(row(State.COMPLETED_NORMALLY), events)
    assert short(found) == [("Waiting", 1, 0), ("Active", 1, 1), ("Completed Normally", 1, 4)]


@pytest.mark.parametrize("kind", [EventType.FAILED, EventType.LOST])
@pytest.mark.parametrize("retrying_known", [True, False])
def test_a_failure_that_was_tried_again_is_a_wait(kind: EventType, retrying_known: bool) -> None:
    events = [said(EventType.STARTED, 1), said(kind, 3), said(EventType.STARTED, 8, 2)]
    if retrying_known:
        events.append(said(EventType.RETRYING, 3, 2))
    found = spans(row(State.ACTIVE, 2), events)
    assert short(found) == [("Waiting", 1, 0), ("Active", 1, 1), ("Waiting", 2, 3), ("Active", 2, 8)]


def test_the_last_failure_is_the_end() -> None:
    events = [said(EventType.STARTED, 1), said(EventType.FAILED, 3)]
    assert short(spans(row(State.COMPLETED_ABNORMALLY), events))[-1] == ("Completed Abnormally", 1, 3)


def test_pauses_are_states_of_their_own() -> None:
    events = [said(EventType.PAUSED, 2), said(EventType.RESUMED, 5), said(EventType.CANCELLED, 6)]
    found = spans(row(State.CANCELLED), events)
    assert seconds_in_state(found, BORN) == {"Waiting": 3, "Paused": 3}


def test_what_the_history_does_not_know_yet_the_row_does() -> None:
    found = spans(row(State.COMPLETED_NORMALLY, started_at=4, finished_at=9), [])
    assert short(found) == [("Waiting", 1, 0), ("Active", 1, 4), ("Completed Normally", 1, 9)]
    assert short(spans(row(State.ACTIVE, started_at=4), []))[-1] == ("Active", 1, 4)


def test_late_events_of_an_earlier_attempt_and_after_the_end_change_nothing() -> None:
    events = [
        said(EventType.STARTED, 1),
        said(EventType.LOST, 2),
        said(EventType.STARTED, 3, 2),
        said(EventType.COMPLETED, 4, 2),
        said(EventType.COMPLETED, 5, 1),
        said(EventType.CANCELLED, 6, 2),
    ]
    assert short(spans(row(State.COMPLETED_NORMALLY, 2), events))[-1] == ("Completed Normally", 2, 4)


def test_clocks_that_differ_make_no_negative_time() -> None:
    events = [said(EventType.STARTED, -5), said(EventType.COMPLETED, -3)]
    found = spans(row(State.COMPLETED_NORMALLY), events)
    assert seconds_in_state(found, BORN) == {"Waiting": 0, "Active": 0}


EVENTS = st.lists(
    st.builds(said, st.sampled_from(EventType), st.floats(0, 1000), st.integers(1, 4)), max_size=12
)


@given(EVENTS, st.sampled_from(State), st.integers(1, 4), st.randoms())
def test_spans_join_seamlessly_whatever_the_history(
    events: list[Said], state: State, attempt: int, random: object
) -> None:
    found = spans(row(state, attempt, started_at=3, finished_at=2000), events)
    assert found[0].since == BORN
    assert [span.until for span in found[:-1]] == [span.since for span in found[1:]]
    assert found[-1].until is None
    assert not any(span.state in TERMINAL for span in found[:-1])
    assert all(first.state is not second.state for first, second in pairwise(found))
    assert all(value >= 0 for value in seconds_in_state(found, BORN).values())
    shuffled = list(events)
    random.shuffle(shuffled)  # type: ignore[attr-defined]
    assert short(spans(row(state, attempt, started_at=3, finished_at=2000), shuffled)) == short(found)


def test_a_run_that_had_ended_when_it_was_taken_up_ended_then() -> None:
    events = [said(EventType.STARTED, 1), said(EventType.COMPLETED, 9), said(EventType.STARTED, 60)]
    assert [event.type for event in in_order(events)][-1] is EventType.COMPLETED
    found = spans(row(State.COMPLETED_NORMALLY), events)
    assert short(found) == [("Waiting", 1, 0), ("Active", 1, 1), ("Completed Normally", 1, 9)]


def test_the_order_is_by_attempt_then_time_then_cause() -> None:
    events = [
        said(EventType.STARTED, 1, 2),
        said(EventType.FAILED, 5),
        said(EventType.RETRYING, 5, 2),
        said(EventType.STARTED, 2),
        said(EventType.QUEUED, 2),
    ]
    assert [(event.type, event.attempt) for event in in_order(events)] == [
        (EventType.QUEUED, 1),
        (EventType.STARTED, 1),
        (EventType.FAILED, 1),
        (EventType.STARTED, 2),
        (EventType.RETRYING, 2),
    ]
