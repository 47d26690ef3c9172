"""Generations: what was sent of a run before it was called back does not start."""

from __future__ import annotations

from datetime import datetime, timedelta
from uuid import UUID

import pytest

from executions.claims import Claimed, Claims, fence
from executions.entries import Entry
from executions.ids import execution_id
from executions.store import Store
from executions.window import Window
from scheduler_project.kernel.clock import from_millis
from tests.integration.making import SPEC

ON_A_CLUSTER_TOO = True

LEASE = timedelta(seconds=30)
RUN = execution_id(UUID(int=7), from_millis(0), "schedule", 3)


@pytest.fixture
def claims(store: Store) -> Claims:
    return Claims(store, "worker", LEASE)


def test_an_earlier_generation_is_stale_and_the_wanted_one_starts(store: Store, claims: Claims) -> None:
    assert fence(store, [(RUN, 1, 1)]) == [True]
    assert claims.claim(RUN, 1) is Claimed.STALE
    assert claims.claim(RUN, 1, generation=1) is Claimed.WON


def test_what_has_begun_is_not_fenced(store: Store, claims: Claims) -> None:
    claims.claim(RUN, 1)
    assert fence(store, [(RUN, 1, 1)]) == [False]
    claims.finish(RUN, 1, b"")
    assert fence(store, [(RUN, 1, 1)]) == [False]
    assert fence(store, [(RUN, 2, 1)]) == [True]  # its retry has not
    assert claims.claim(RUN, 2) is Claimed.STALE


def test_a_later_generation_than_the_fence_starts(store: Store, claims: Claims) -> None:
    fence(store, [(RUN, 1, 65_535)])
    assert claims.claim(RUN, 1, generation=65_534) is Claimed.STALE
    assert claims.claim(RUN, 1, generation=0) is Claimed.WON  # 65,536, of which a message has the low bits


def test_a_fence_is_never_lowered(store: Store, claims: Claims) -> None:
    assert fence(store, [(RUN, 1, 5), (RUN, 1, 3)]) == [True, True]
    assert claims.claim(RUN, 1, generation=3) is Claimed.STALE
    assert claims.claim(RUN, 1, generation=5) is Claimed.WON


def test_generations_are_told_apart_after_many_changes(store: Store, claims: Claims) -> None:
    fence(store, [(RUN, 1, 65_536 + 7)])
    assert claims.claim(RUN, 1, generation=6) is Claimed.STALE
    assert claims.claim(RUN, 1, generation=7) is Claimed.WON  # a message has the low bits only


def test_a_run_that_goes_on_is_taken_up_whatever_the_fence(store: Store, claims: Claims) -> None:
    fence(store, [(RUN, 1, 1)])
    assert claims.claim(RUN, 1, reattach=True) is Claimed.WON


def test_what_was_sent_in_vain_does_not_count_as_sent(window: Window, claims: Claims) -> None:
    now: datetime = from_millis(window.store.now_ms())
    entry = Entry(execution_id=RUN, spec_id=SPEC.id, attempt=1, due=now)
    window.add([entry], {})
    (due,) = window.pop([3], LEASE, 10)
    window.confirm(due.runs, now, timedelta(minutes=5))
    fence(window.store, [(RUN, 1, 1)])
    assert window.locate([entry])[0].sent_at == now
    claims.claim(RUN, 1)
    assert window.locate([entry])[0].sent_at is None
