from __future__ import annotations

import time
from collections.abc import Callable
from datetime import timedelta
from uuid import UUID, uuid4

import pytest

from executions.claims import Claimed, Claims, KnownClaim, Renewal, claim_key, heard, known_claims
from executions.ids import execution_id
from executions.store import Store, StoreUnavailable
from executions.window import Window
from executions.worker.leases import LeaseKeeper
from scheduler_project.kernel.clock import monotonic, utcnow

LEASE = timedelta(seconds=30)
KEEP = timedelta(minutes=1)


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
    heard(store, [run, uuid4()], KEEP)
    assert left_ms() <= 60_000
    worker.claim(run, 2)
    lease = left_ms()
    heard(store, [run], KEEP)  # of the attempt before
    assert left_ms() <= lease


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
    keeper = LeaseKeeper(Claims(store, "first", LEASE))
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
