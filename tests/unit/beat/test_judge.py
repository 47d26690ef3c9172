from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from beat.sweeper import Left, OverdueRow, SweepTimes, Verdict, judge
from executions.claims import KnownClaim
from executions.engines import Site
from executions.entries import Flag
from executions.events import Event, encode
from executions.states import EventType
from executions.window import Whereabouts

NOW = datetime(2026, 11, 30, 2, tzinfo=UTC)
S = timedelta(seconds=1)
TIMES = SweepTimes(enqueue_timeout=300 * S, run_lease=10 * S, misfire_grace=60 * S, engine_wait=120 * S)
ID = UUID("019ad27d-3400-7003-8000-000000000001")
NOWHERE = Whereabouts(in_flight=False, sent_at=None)
FLYING = Whereabouts(in_flight=True, sent_at=None)
SENT, SENT_LONG_AGO = (Whereabouts(in_flight=False, sent_at=NOW - n * S) for n in (100, 300))
IN_LINE = Whereabouts(in_flight=False, sent_at=NOW - 300 * S, in_line=True)
HELD = KnownClaim(2, ends_in=9 * S)


def row(state: str, cancel: bool = False, late: timedelta = S, unsent: bool = False) -> OverdueRow:
    return OverdueRow(ID, ID, 2, NOW - late, 0, state, NOW - S if cancel else None, ID, NOW - late, unsent)


def ended(seconds_ago: int) -> KnownClaim:
    event = Event(type=EventType.COMPLETED, execution_id=ID, attempt=2, at=NOW - seconds_ago * S)
    return KnownClaim(2, encode([event]))


PUSHED = Verdict(push=Flag.NONE)
LATER = Verdict(next_check=NOW + 9 * S)
RECORDED_SOON = Verdict(next_check=NOW + 10 * S)
TAKEN_UP = Verdict(push=Flag.REATTACH, next_check=NOW + 20 * S)


@pytest.mark.parametrize(
    ("state", "claim", "place", "verdict"),
    [
        ("Waiting", None, NOWHERE, PUSHED),  # a push or a publish was lost
        ("Waiting", None, FLYING, Verdict()),  # the dispatcher's lease decides
        ("Waiting", None, SENT, Verdict(next_check=NOW + 200 * S)),  # in the queue
        ("Waiting", None, SENT_LONG_AGO, PUSHED),  # lost in the queue
        ("Waiting", None, IN_LINE, Verdict(next_check=NOW + 30 * S)),  # for a place in a pool
        ("Waiting", HELD, NOWHERE, LATER),  # JOB_STARTED is on its way
        ("Waiting", KnownClaim(1), NOWHERE, PUSHED),  # that was the attempt before
        ("Waiting", KnownClaim(3, ends_in=9 * S), NOWHERE, LATER),  # the row is behind
        ("Active", HELD, NOWHERE, LATER),
        ("Active", None, NOWHERE, TAKEN_UP),  # its worker is gone
        ("Active", None, SENT, Verdict(next_check=NOW + 20 * S)),  # to be taken up, by a worker that is free
        ("Active", None, SENT_LONG_AGO, TAKEN_UP),
        ("Active", KnownClaim(1), NOWHERE, TAKEN_UP),
        ("Active", None, FLYING, Verdict()),
        ("Active", ended(299), NOWHERE, RECORDED_SOON),  # its outcome is on its way
        ("Active", ended(300), NOWHERE, Verdict(next_check=NOW + 300 * S, repeat=ended(300).outcome)),
    ],
)
def test_what_becomes_of_an_overdue_row(
    state: str, claim: KnownClaim | None, place: Whereabouts, verdict: Verdict
) -> None:
    assert judge(row(state), claim, place, NOW, TIMES) == verdict


@pytest.mark.parametrize(("seconds", "pause_s"), [(300, 300), (301, 301), (900, 600), (100, 300)])
def test_what_may_only_wait_in_a_long_queue_is_sent_again_after_pauses_that_double(
    seconds: int, pause_s: int
) -> None:
    queued = row("Waiting")._replace(queued_at=NOW - seconds * S)
    expected = Verdict(push=Flag.NONE, next_check=NOW + pause_s * S)
    assert judge(queued, None, NOWHERE, NOW, TIMES) == expected


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


@pytest.mark.parametrize("unsent", [False, True])
def test_what_has_begun_and_nobody_has_recorded_is_taken_up_and_not_started_anew(unsent: bool) -> None:
    waiting, left = row("Waiting", late=400 * S, unsent=unsent), Left(Site(2, NOW - 399 * S, engine="e"))
    assert judge(waiting, None, NOWHERE, NOW, TIMES, left) == TAKEN_UP
    assert judge(waiting, None, SENT_LONG_AGO, NOW, TIMES, left) == TAKEN_UP
    assert judge(waiting, None, SENT, NOW, TIMES, left) == Verdict(next_check=NOW + 200 * S)


@pytest.mark.parametrize(("claim", "place"), [(HELD, NOWHERE), (None, NOWHERE), (None, FLYING)])
def test_the_tombstone_of_a_run_that_is_to_stop_is_left_again(
    claim: KnownClaim | None, place: Whereabouts
) -> None:
    assert judge(row("Active", cancel=True), claim, place, NOW, TIMES).forbid
    assert not judge(row("Active"), claim, place, NOW, TIMES).forbid


@pytest.mark.parametrize("place", [NOWHERE, FLYING, SENT, IN_LINE])
def test_a_run_that_waits_and_is_not_wanted_is_ended_unless_it_may_have_begun(place: Whereabouts) -> None:
    unwanted = row("Waiting", cancel=True)
    assert judge(unwanted, None, place, NOW, TIMES) == Verdict(end=True)
    assert judge(unwanted, HELD, place, NOW, TIMES) == Verdict(next_check=NOW + 9 * S, forbid=True)
    begun = Left(Site(2, NOW))
    assert judge(unwanted, None, place, NOW, TIMES, begun) == Verdict(next_check=NOW + 10 * S, forbid=True)
    assert judge(unwanted, None, place, NOW + 299 * S, TIMES, begun) == Verdict(end=True)


@pytest.mark.parametrize(
    ("taken", "sent", "given_up", "verdict"),
    [
        # When its message was last taken, when it was last sent, and when its engine is given up: s from now.
        (-200, -200, 100, TAKEN_UP),  # its worker had it
        (-200, -199, 100, Verdict(next_check=NOW + 20 * S)),  # waits for a worker to be free
        (-200, -199, 15, Verdict(next_check=NOW + 15 * S)),
        (-200, -100, -50, TAKEN_UP),  # nobody of its engine came
        (-200, -100, -100, TAKEN_UP),
        (-200, -99, -100, Verdict(next_check=NOW + 20 * S)),  # to anybody
        (-900, -300, 100, TAKEN_UP),  # lost in the queue
        (-200, None, 15, Verdict(push=Flag.REATTACH, next_check=NOW + 15 * S)),
    ],
)
def test_a_run_is_sent_once_to_be_taken_up(
    taken: int, sent: int | None, given_up: int, verdict: Verdict
) -> None:
    place = Whereabouts(in_flight=False, sent_at=None if sent is None else NOW + sent * S)
    left = Left(Site(2, NOW + taken * S, engine="e"), NOW + given_up * S)
    assert judge(row("Active"), None, place, NOW, TIMES, left) == verdict
