from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from beat.sweeper import OverdueRow, SweepTimes, Verdict, judge
from executions.claims import KnownClaim
from executions.entries import Flag
from executions.events import Event, encode
from executions.states import EventType
from executions.window import Whereabouts

NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
S = timedelta(seconds=1)
TIMES = SweepTimes(enqueue_timeout=300 * S, run_lease=10 * S, misfire_grace=60 * S)
ID = UUID("019ad27d-3400-7003-8000-000000000001")
NOWHERE = Whereabouts(in_flight=False, sent_at=None)
FLYING = Whereabouts(in_flight=True, sent_at=None)
SENT, SENT_LONG_AGO = (Whereabouts(in_flight=False, sent_at=NOW - n * S) for n in (100, 300))
HELD = KnownClaim(2)


def row(state: str, cancel: bool = False, late: timedelta = S, unsent: bool = False) -> OverdueRow:
    return OverdueRow(ID, ID, 2, NOW - late, 0, state, NOW - S if cancel else None, ID, NOW - late, unsent)


def ended(seconds_ago: int) -> KnownClaim:
    event = Event(type=EventType.COMPLETED, execution_id=ID, attempt=2, at=NOW - seconds_ago * S)
    return KnownClaim(2, encode([event]))


PUSHED = Verdict(push=Flag.NONE)
LATER = Verdict(next_check=NOW + 10 * S)
TAKEN_UP = Verdict(push=Flag.REATTACH, next_check=NOW + 20 * S)


@pytest.mark.parametrize(
    ("state", "claim", "place", "verdict"),
    [
        ("Waiting", None, NOWHERE, PUSHED),  # a push or a publish was lost
        ("Waiting", None, FLYING, Verdict()),  # the dispatcher's lease decides
        ("Waiting", None, SENT, Verdict(next_check=NOW + 200 * S)),  # in the queue
        ("Waiting", None, SENT_LONG_AGO, PUSHED),  # lost in the queue
        ("Waiting", HELD, NOWHERE, LATER),  # JOB_STARTED is on its way
        ("Waiting", KnownClaim(1), NOWHERE, PUSHED),  # that was the attempt before
        ("Waiting", KnownClaim(3), NOWHERE, LATER),  # the row is behind
        ("Active", HELD, NOWHERE, LATER),
        ("Active", None, NOWHERE, TAKEN_UP),  # its worker is gone
        ("Active", None, SENT, TAKEN_UP),
        ("Active", KnownClaim(1), NOWHERE, TAKEN_UP),
        ("Active", None, FLYING, Verdict()),
        ("Active", ended(299), NOWHERE, LATER),  # its outcome is on its way
        ("Active", ended(300), NOWHERE, Verdict(next_check=NOW + 300 * S, repeat=ended(300).outcome)),
    ],
)
def test_what_becomes_of_an_overdue_row(
    state: str, claim: KnownClaim | None, place: Whereabouts, verdict: Verdict
) -> None:
    assert judge(row(state), claim, place, NOW, TIMES) == verdict


@pytest.mark.parametrize(
    ("late", "unsent", "claim", "place", "verdict"),
    [
        (61, True, None, NOWHERE, Verdict(missed=True)),
        (60, True, None, NOWHERE, PUSHED),  # just late
        (61, False, None, NOWHERE, PUSHED),  # a retry, or somebody asked for it: no policy skips it
        (61, True, None, FLYING, Verdict()),  # on its way
        (61, True, None, SENT, Verdict(next_check=NOW + 200 * S)),
        (61, True, HELD, NOWHERE, LATER),
    ],
)
def test_a_run_that_nothing_could_start_is_a_misfire(
    late: int, unsent: bool, claim: KnownClaim | None, place: Whereabouts, verdict: Verdict
) -> None:
    assert judge(row("Waiting", late=late * S, unsent=unsent), claim, place, NOW, TIMES) == verdict


@pytest.mark.parametrize(("claim", "place"), [(HELD, NOWHERE), (None, NOWHERE), (None, FLYING)])
def test_the_tombstone_of_a_run_that_is_to_stop_is_left_again(
    claim: KnownClaim | None, place: Whereabouts
) -> None:
    assert judge(row("Active", cancel=True), claim, place, NOW, TIMES).forbid
    assert not judge(row("Active"), claim, place, NOW, TIMES).forbid
