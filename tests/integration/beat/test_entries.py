from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from types import SimpleNamespace
from typing import Any

import pytest
from celery.schedules import schedule

from beat.entries import PeriodicEntries
from executions.store import Store, StoreUnavailable
from scheduler_project.kernel.clock import ManualClock

ON_A_CLUSTER_TOO = True

NOON = datetime(2026, 11, 30, 12, tzinfo=UTC)


def entries(*names: str, clock: ManualClock) -> list[Any]:
    """Like Celery's ScheduleEntry, every hour by ``clock``."""
    hourly = schedule(3600.0, nowfun=clock.now)
    return [SimpleNamespace(name=name, schedule=hourly) for name in names]


def test_three_beats_fire_each_entry_once(store: Store) -> None:
    clock = ManualClock(NOON)
    sent: list[Any] = []
    known = entries("partitions", "reports", clock=clock)
    beats = [PeriodicEntries(store, clock, sent.append) for _ in range(3)]

    def all_at_once() -> list[str]:
        sent.clear()
        barrier = threading.Barrier(3)

        def work(beat: PeriodicEntries) -> None:
            barrier.wait()
            beat.fire_due(known)
            beat.fire_due(known)

        threads = [threading.Thread(target=work, args=(beat,)) for beat in beats]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return sorted(entry.name for entry in sent)

    assert all_at_once() == ["partitions", "reports"]  # never fired: due at once
    assert all_at_once() == []
    clock.advance(timedelta(minutes=59))
    assert all_at_once() == []
    clock.advance(timedelta(minutes=1, seconds=1))
    assert all_at_once() == ["partitions", "reports"]


def test_without_entries_nothing_is_asked() -> None:
    gone = Store("redis://127.0.0.1:1/0", "nobody", timeout_s=1)
    clock = ManualClock(NOON)
    PeriodicEntries(gone, clock, print).fire_due([])
    with pytest.raises(StoreUnavailable):
        PeriodicEntries(gone, clock, print).fire_due(entries("partitions", clock=clock))
