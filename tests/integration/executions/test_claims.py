from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from functools import partial
from uuid import UUID, uuid4

import pytest

from executions.claims import Claimed, Claims, KnownClaim, Renewal, claim_key, heard, known_claims, sent_again
from executions.engines import Site, known_sites
from executions.ids import execution_id
from executions.store import Store, StoreUnavailable
from executions.window import Window
from executions.worker.leases import LeaseKeeper
from scheduler_project.kernel.clock import EPOCH, monotonic, to_millis, utcnow

ON_A_CLUSTER_TOO = True

BEGUN = datetime(2026, 11, 30, 2, tzinfo=UTC)
LEASE = timedelta(seconds=30)
KEEP = timedelta(minutes=1)
KEPT_SHORTLY = timedelta(milliseconds=100)


@pytest.fixture
def run() -> UUID:
    return execution_id(uuid4(), utcnow(), "schedule", 3)


@pytest.fixture
def claims_of(store: Store) -> Callable[..., Claims]:
    return lambda name, lease=LEASE: Claims(store, name, lease)


def test_of_two_workers_one_wins_and_may_ask_again(claims_of: Callable[..., Claims], run: UUID) -> None:
    first, second = claims_of("first"), claims_of("second")
    assert first.claim(run, 1) is Claimed.WON
    assert second.claim(run, 1) is Claimed.HELD
    assert first.claim(run, 1) is Claimed.WON


def test_a_lease_that_ended_is_free(claims_of: Callable[..., Claims], run: UUID) -> None:
    assert claims_of("first", timedelta(milliseconds=30)).claim(run, 1) is Claimed.WON
    time.sleep(0.04)
    assert claims_of("second").claim(run, 1) is Claimed.WON


def test_what_is_done_stays_done_and_its_outcome_can_be_read(
    claims_of: Callable[..., Claims], store: Store, run: UUID
) -> None:
    claims_of("first").claim(run, 1)
    claims_of("first").finish(run, 1, b'{"events": [1 2]}')
    assert claims_of("second").claim(run, 1) is Claimed.DONE
    assert claims_of("first").claim(run, 1) is Claimed.DONE
    assert known_claims(store, [run, uuid4()]) == [KnownClaim(1, b'{"events": [1 2]}'), None]
    assert known_claims(store, []) == []


def test_an_outcome_is_kept_until_it_is_heard(
    claims_of: Callable[..., Claims], store: Store, run: UUID
) -> None:
    def left_ms() -> int:
        (found,) = store.batch(lambda pipe: pipe.pttl(claim_key(store, run)))
        return int(found)

    worker = claims_of("first")
    worker.claim(run, 1)
    worker.finish(run, 1, b"outcome")
    assert left_ms() > timedelta(days=6) // timedelta(milliseconds=1)
    heard(store, [(run, 1), (uuid4(), 1)], KEEP)
    assert left_ms() <= 60_000
    worker.claim(run, 2)
    lease = left_ms()
    heard(store, [(run, 1)], KEEP)  # of the attempt before
    assert left_ms() <= lease


@pytest.mark.parametrize("reattach", [False, True])
def test_a_duplicate_stays_out_though_the_worker_died_before_it_ended_its_claim(
    claims_of: Callable[..., Claims], store: Store, run: UUID, reattach: bool
) -> None:
    """It has published the outcome; a recorder hears that, with the claim held yet, or ended by itself."""
    assert claims_of("dies", timedelta(milliseconds=30)).claim(run, 1) is Claimed.WON
    heard(store, [(run, 1)], KEEP)
    time.sleep(0.04)
    assert known_claims(store, [run]) == [None]
    assert claims_of("second").claim(run, 1, reattach=reattach) is Claimed.DONE
    assert claims_of("second").claim(run, 2, reattach=reattach) is Claimed.WON, "the next attempt begins"


def test_an_outcome_that_comes_late_does_not_let_a_later_attempt_that_has_ended_begin(
    claims_of: Callable[..., Claims], store: Store, run: UUID
) -> None:
    """Its worker has published the outcome of attempt 2 and died; that of attempt 1 is delivered again."""
    assert claims_of("dies", timedelta(milliseconds=30)).claim(run, 2) is Claimed.WON
    time.sleep(0.04)
    heard(store, [(run, 2)], KEEP)
    heard(store, [(run, 1)], KEPT_SHORTLY)
    time.sleep(2 * KEPT_SHORTLY.total_seconds())
    assert claims_of("second").claim(run, 2) is Claimed.DONE
    assert claims_of("second").claim(run, 3) is Claimed.WON


@pytest.mark.parametrize("first", ["it is recorded", "it is sent again"])
@pytest.mark.parametrize("ended", ["its worker has ended its claim", "its worker has died"])
def test_what_was_sent_again_is_kept_out_however_long_the_queue(
    claims_of: Callable[..., Claims], store: Store, run: UUID, first: str, ended: str
) -> None:
    """A message that waited longer than an outcome is kept otherwise would start the run once more."""
    assert claims_of("first", timedelta(milliseconds=30)).claim(run, 1) is Claimed.WON
    if ended == "its worker has ended its claim":
        claims_of("first").finish(run, 1, b"outcome")
    steps = [lambda: heard(store, [(run, 1)], KEPT_SHORTLY), lambda: sent_again(store, [run])]
    for step in steps if first == "it is recorded" else reversed(steps):
        step()
    time.sleep(2 * KEPT_SHORTLY.total_seconds())
    assert claims_of("second").claim(run, 1) is Claimed.DONE


def test_what_was_sent_once_is_kept_shortly(
    claims_of: Callable[..., Claims], store: Store, run: UUID
) -> None:
    claims_of("first").claim(run, 1)
    claims_of("first").finish(run, 1, b"outcome")
    heard(store, [(run, 1)], KEPT_SHORTLY)
    time.sleep(2 * KEPT_SHORTLY.total_seconds())
    assert claims_of("second").claim(run, 1) is Claimed.WON


def test_a_run_that_is_being_stopped_hears_of_it_though_its_end_was_recorded(
    claims_of: Callable[..., Claims], store: Store, window: Window, run: UUID
) -> None:
    """Somebody has reported its end, and the worker is to stop what still runs."""
    worker = claims_of("first")
    worker.claim(run, 1)
    window.forbid(run)
    heard(store, [(run, 1)], KEEP)
    assert worker.renew([(run, 1)]) == [Renewal.STOPPED]


def test_a_mark_of_an_earlier_attempt_keeps_no_later_one_out(
    claims_of: Callable[..., Claims], store: Store, run: UUID
) -> None:
    heard(store, [(run, 1)], KEEP)
    assert claims_of("second").claim(run, 2) is Claimed.WON
    heard(store, [(run, 1)], KEEP)  # said again
    assert claims_of("third").claim(run, 2) is Claimed.HELD


def test_a_later_attempt_fences_the_earlier(claims_of: Callable[..., Claims], run: UUID) -> None:
    first, second = claims_of("first"), claims_of("second")
    first.claim(run, 1)
    assert second.claim(run, 2) is Claimed.WON
    assert first.claim(run, 1) is Claimed.STALE
    assert first.renew([(run, 1)]) == [Renewal.FENCED]
    first.finish(run, 1, b"late")
    first.give_up(run, 1)
    assert second.renew([(run, 2)]) == [Renewal.HELD]


def test_a_retry_is_claimed_after_the_attempt_before_is_done(
    claims_of: Callable[..., Claims], store: Store, run: UUID
) -> None:
    worker = claims_of("first")
    worker.claim(run, 1)
    worker.finish(run, 1, b"")
    assert worker.claim(run, 2) is Claimed.WON
    assert known_claims(store, [run]) == [KnownClaim(2)]


def test_given_up_another_may_claim_at_once(claims_of: Callable[..., Claims], run: UUID) -> None:
    claims_of("first").claim(run, 1)
    claims_of("second").give_up(run, 1)
    assert claims_of("second").claim(run, 1) is Claimed.HELD
    claims_of("first").give_up(run, 1)
    assert claims_of("second").claim(run, 1) is Claimed.WON


def test_renewing_keeps_a_claim_longer_than_its_lease(claims_of: Callable[..., Claims], run: UUID) -> None:
    lease = timedelta(seconds=1)
    worker = claims_of("first", lease)
    worker.claim(run, 1)
    lease_ends = monotonic() + lease.total_seconds()
    while monotonic() < lease_ends + 0.1:
        time.sleep(0.1)
        assert worker.renew([(run, 1)]) == [Renewal.HELD]
    assert claims_of("second").claim(run, 1) is Claimed.HELD
    assert worker.renew([]) == []


def test_a_claim_that_redis_has_lost_is_made_anew_by_its_worker(
    claims_of: Callable[..., Claims], store: Store, run: UUID
) -> None:
    worker = claims_of("first")
    worker.claim(run, 1)
    store.delete_namespace()
    assert worker.renew([(run, 1)]) == [Renewal.HELD]
    assert claims_of("second").claim(run, 1) is Claimed.HELD


def test_where_another_was_faster_after_the_loss_the_first_is_fenced(
    claims_of: Callable[..., Claims], store: Store, run: UUID
) -> None:
    worker = claims_of("first")
    worker.claim(run, 1)
    store.delete_namespace()
    claims_of("second").claim(run, 1)
    assert worker.renew([(run, 1)]) == [Renewal.FENCED]


def test_an_outcome_is_kept_even_if_redis_lost_the_claim(
    claims_of: Callable[..., Claims], store: Store, run: UUID
) -> None:
    worker = claims_of("first")
    worker.claim(run, 1)
    store.delete_namespace()
    worker.finish(run, 1, b"outcome")
    assert known_claims(store, [run]) == [KnownClaim(1, b"outcome")]


def test_a_tombstone_lets_nobody_start_and_tells_who_runs_it(
    claims_of: Callable[..., Claims], window: Window, run: UUID
) -> None:
    other = execution_id(uuid4(), utcnow(), "schedule", 3)
    worker = claims_of("first")
    worker.claim(other, 1)
    for identity in (run, other):
        window.forbid(identity)
    assert worker.claim(run, 1) is Claimed.STOPPED
    assert worker.renew([(other, 1)]) == [Renewal.STOPPED]


def test_what_has_begun_can_be_taken_up_to_be_stopped(
    claims_of: Callable[..., Claims], window: Window, run: UUID
) -> None:
    """Its worker died and then it was cancelled: somebody must find its container and end it."""
    window.forbid(run)
    taker = claims_of("second")
    assert taker.claim(run, 1, reattach=True) is Claimed.WON
    assert taker.renew([(run, 1)]) == [Renewal.STOPPED]


def test_a_worker_reserves_an_attempt_once(store: Store, run: UUID) -> None:
    keeper = LeaseKeeper(Claims(store, "first", LEASE), lambda: None)
    try:
        assert keeper.reserve((run, 1))
        assert not keeper.reserve((run, 1))
        keeper.hold((run, 1))
        assert not keeper.reserve((run, 1))
        assert keeper.answer((run, 1)) is Renewal.HELD
        assert keeper.reserve((run, 2))
        keeper.drop((run, 1))
        assert keeper.answer((run, 1)) is Renewal.FENCED
        assert keeper.reserve((run, 1))
    finally:
        keeper.close()


def test_a_redis_that_is_away_is_said_to_be(run: UUID) -> None:
    gone = Store("redis://127.0.0.1:1/0", "nobody", timeout_s=1)
    claims = Claims(gone, "first", LEASE)
    for call in (
        lambda: claims.claim(run, 1),
        lambda: claims.renew([(run, 1)]),
        lambda: claims.finish(run, 1, b""),
        lambda: known_claims(gone, [run]),
    ):
        with pytest.raises(StoreUnavailable):
            call()


def test_a_claim_leaves_behind_where_and_since_when_a_run_is(
    claims_of: Callable[..., Claims], store: Store, run: UUID
) -> None:
    def site() -> Site:
        (found,) = known_sites(store, [(run, 1)])
        assert found
        return found

    first, second = claims_of("first"), claims_of("second")
    first.engine, second.engine = "here", "there"
    before = store.now_ms()
    first.claim(run, 1, begun_at=BEGUN)
    taken = site().taken_at
    assert site() == Site(1, taken, BEGUN, "here")
    assert to_millis(taken) >= before
    time.sleep(0.002)
    assert second.claim(run, 1, reattach=True) is Claimed.HELD
    assert site().taken_at > taken  # that message is used up, too
    first.give_up(run, 1)
    assert second.claim(run, 1, reattach=True) is Claimed.WON
    assert (site().begun_at, site().engine) == (BEGUN, "here")
    store.delete_namespace()
    second.renew([(run, 1)])
    assert site() == Site(1, EPOCH, None, "there")  # who has it knows where it is
    assert known_sites(store, [(run, 2)]) == [None]
    second.finish(run, 1, b"outcome")
    assert known_sites(store, [(run, 1)]) == [None]


def test_a_worker_whose_engine_answers_late_says_where_its_runs_are_then(
    claims_of: Callable[..., Claims], store: Store, run: UUID
) -> None:
    claims = claims_of("first")
    claims.claim(run, 1, begun_at=BEGUN)
    claims.engine = "here"
    claims.renew([(run, 1)])
    (site,) = known_sites(store, [(run, 1)])
    assert site
    assert (site.begun_at, site.engine) == (BEGUN, "here")


def test_a_renewal_that_is_on_its_way_does_not_make_a_claim_anew_that_is_given_up(
    claims_of: Callable[..., Claims],
) -> None:
    first, second = claims_of("first"), claims_of("second")
    keeper = LeaseKeeper(first, lambda: None)
    try:
        with ThreadPoolExecutor() as threads:
            for _ in range(100):
                attempt = (execution_id(uuid4(), utcnow(), "schedule", 3), 1)
                assert first.claim(*attempt) is Claimed.WON
                keeper.hold(attempt)
                renewing = [threads.submit(keeper.renewed, attempt) for _ in range(3)]
                assert keeper.end(attempt, partial(first.give_up, *attempt))
                assert [future.result(10) for future in renewing]
                assert second.claim(*attempt) is Claimed.WON
    finally:
        keeper.close()
