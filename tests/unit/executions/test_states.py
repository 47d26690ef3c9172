from __future__ import annotations

from itertools import product

import pytest

from executions.states import MOVES, TERMINAL, EventType, State, move

W, A, P = State.WAITING, State.ACTIVE, State.PAUSED
N, F, C = State.COMPLETED_NORMALLY, State.COMPLETED_ABNORMALLY, State.CANCELLED
RULE = {  # from: Waiting, Active, Paused
    "JOB_QUEUED": (W, None, None),
    "JOB_STARTED": (A, A, A),
    "JOB_COMPLETED": (N, N, N),
    "JOB_FAILED": (F, F, F),
    "JOB_LOST": (F, F, F),
    "JOB_RETRYING": (W, W, W),
    "JOB_CANCELLED": (C, C, C),
    "JOB_PAUSED": (P, None, None),
    "JOB_RESUMED": (None, None, W),
    "JOB_SKIPPED": (C, None, None),
}


@pytest.mark.parametrize(("state", "event"), list(product(State, EventType)))
def test_every_event_in_every_state_does_what_the_rule_says(state: State, event: EventType) -> None:
    expected = dict(zip((W, A, P), RULE[event.value], strict=True)).get(state)
    assert move(state, event) is expected


@pytest.mark.parametrize(("state", "event"), list(product(sorted(TERMINAL), EventType)))
def test_no_event_leads_out_of_an_end(state: State, event: EventType) -> None:
    assert move(state, event) is None


def test_the_table_knows_every_event_and_the_states_are_the_public_ones() -> None:
    assert set(MOVES) == set(EventType)
    assert [state.value for state in State] == [
        "Waiting",
        "Active",
        "Completed Normally",
        "Completed Abnormally",
        "Paused",
        "Cancelled",
    ]
    assert {N, F, C} == TERMINAL
    assert {W, A, P} == set(State) - TERMINAL
