from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from beat import loader as loading
from beat.loader import NEAR, Loader, share_used
from beat.ownership import Ownership
from executions import freshness
from executions.entries import Entry, spec_head
from executions.freshness import FRESH_S, Stale
from executions.store import Store
from executions.transitions import record
from executions.window import Window
from scheduler_project.kernel.clock import EPOCH, from_millis, monotonic, utcnow
from tests.integration.counting_store import CountingStore
from tests.integration.making import FAILED, QUEUED, STARTED, make_run, make_runs, said, stored_spec
from tests.redis_servers import RedisServer

pytestmark = pytest.mark.django_db
LENGTH = timedelta(minutes=5)
LEASE = timedelta(minutes=1)


@pytest.fixture
def loader(window: Window, ownership: Ownership) -> Loader:
    return Loader(window, ownership, LENGTH)


def popped(window: Window, shard: int = 3) -> list[UUID]:
    return [run.execution_id for run in window.pop([shard], LEASE, 1000)[0].runs]


def test_due_runs_come_into_the_window_each_once(
    loader: Loader, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PAGE", 7)
    now, spec = utcnow(), stored_spec()
    mine, others = make_runs(20, spec, due=now), make_runs(3, spec, due=now, shard=9)
    soon, late = make_run(due=now + LENGTH / 2), make_run(due=now + 2 * LENGTH)
    loader.run_once()
    (due,) = window.pop([3], LEASE, 1000)
    assert sorted(run.execution_id for run in due.runs) == sorted(mine)
    assert sorted(popped(window, 9)) == sorted(others)
    assert due.next_due is not None
    assert abs(due.next_due - (now + LENGTH / 2)) < timedelta(milliseconds=2)
    assert window.specs({3: [spec_head(spec.id)]}) == {spec_head(spec.id): spec.canonical}
    loader.run_once()
    assert popped(window) == []
    assert soon != late


def test_the_mark_moves_with_the_window(loader: Loader, window: Window, store: Store) -> None:
    before = from_millis(store.now_ms())
    loader.run_once()
    marks = window.loaded_until(range(16))
    assert all(mark is not None and before + LENGTH <= mark for mark in marks.values())
    make_run(due=before + LENGTH / 2)  # inside: whoever commits it pushes it
    loader.run_once()
    assert window.pop([3], LEASE, 10)[0].next_due is None


def test_a_redis_that_has_lost_its_data_is_loaded_anew(
    loader: Loader, window: Window, ownership: Ownership, store: Store
) -> None:
    runs = make_runs(5)
    loader.run_once()
    store.delete_namespace()
    ownership.renew()
    loader.run_once()
    assert sorted(popped(window)) == sorted(runs)


def test_what_is_queued_active_or_ended_is_not_loaded(loader: Loader, window: Window) -> None:
    queued, active, retried = make_run(), make_run(), make_run(stored_spec(retries=1))
    record([said(QUEUED, queued), said(STARTED, active), said(FAILED, retried)], utcnow())
    loader.run_once()
    assert [(run.execution_id, run.attempt) for run in window.pop([3], LEASE, 10)[0].runs] == [(retried, 2)]


def test_who_owns_no_shard_loads_nothing(window: Window, store: Store) -> None:
    make_run()
    assert Loader(window, Ownership(store, "new", 16, LEASE), LENGTH).run_once() == loading.WAIT_FOR_SHARDS_S
    assert popped(window) == []


def test_a_spec_that_redis_has_lost_is_brought(loader: Loader, window: Window) -> None:
    spec = stored_spec(command="echo lost")
    loader.run_once()
    loader.want_spec(5, spec_head(spec.id))
    loader.want_spec(5, b"unknown!")
    loader.run_once()
    assert window.specs({5: [spec_head(spec.id)]}) == {spec_head(spec.id): spec.canonical}


def test_members_are_packed_by_the_database_as_they_are_by_python(loader: Loader, window: Window) -> None:
    spec, due = stored_spec(), utcnow() - timedelta(seconds=1)
    due = due.replace(microsecond=due.microsecond // 1000 * 1000 + 1)  # the score is rounded up
    runs = make_runs(2, spec, due=due)
    with connection.cursor() as cursor:
        cursor.execute("UPDATE executions_execution SET attempt = 104, generation = 65536 * 3 + 4660")
    loader.run_once()
    entries = [
        Entry(execution_id=run, spec_id=spec.id, attempt=104, due=due, generation=65536 * 3 + 4660)
        for run in runs
    ]
    bucket = window.store.key(3, "b", str(entries[0].score // 60_000))
    (found,) = window.store.batch(lambda pipe: pipe.zrange(bucket, 0, -1, withscores=True))
    assert sorted(found) == sorted((entry.member, entry.score) for entry in entries)


def test_a_page_is_one_round_trip_and_each_runspec_is_brought_once(
    settings: Any, ownership: Ownership, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "PAGE", 50)
    specs = [stored_spec(command=f"once {n}") for n in range(4)]
    for n in range(100):
        make_run(specs[n % 4], due=utcnow(), shard=n % 16)
    store = CountingStore(settings.REDIS_URL, settings.PUNCTUAL_NAMESPACE)
    window = Window(store)
    loader = Loader(window, ownership, LENGTH)
    for brought in (16, 0, 16):
        store.reset()
        with CaptureQueriesContext(connection) as queries:
            loader.run_once()
        assert store.round_trips == 2 + 2 + 1  # the time, the marks; two pages; the marks
        assert store.set_keys - 16 == brought  # of the marks there are 16
        assert len(queries) <= 3
        if brought:  # the window is not lost, but loaded once more
            window.mark_loaded(range(16), EPOCH)
        else:
            store.delete_namespace()
            ownership.renew()
    store.close()


def test_while_redis_nears_its_limit_only_the_next_runs_are_loaded(
    ownership: Ownership, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    server = RedisServer(tmp_path, "--maxmemory", "1gb", "--maxmemory-policy", "noeviction")
    window = Window(Store(f"redis://127.0.0.1:{server.port}/0", "punctual"))
    loader = Loader(window, ownership, LENGTH)
    now = utcnow()
    make_run(due=now + NEAR / 2)
    make_run(due=now + LENGTH / 2)
    try:
        server.redis.set("filler", "x" * 32_000_000)
        server.redis.config_set("maxmemory", int(server.redis.info("memory")["used_memory"] * 1.15))
        loader.run_once()
        assert in_window(server) == 1
        server.redis.config_set("maxmemory", "1gb")
        loader.run_once()
        assert in_window(server) == 2
    finally:
        window.store.close()
        server.kill()
    said_ = [record.getMessage() for record in caplog.records if record.getMessage().startswith("window_")]
    assert said_ == ["window_shortened", "window_loaded", "window_whole", "window_loaded"]


def in_window(server: RedisServer) -> int:
    return sum(server.redis.zcard(name) for name in server.redis.scan_iter(match="punctual:{*}:b:*"))


@pytest.mark.parametrize(
    ("facts", "share"),
    [
        ({"used_memory": 90, "maxmemory": 0}, 0.0),
        ({"used_memory": 90, "maxmemory": 100}, 0.9),
        ({"used_memory": 9}, 0),
    ],
)
def test_how_full_a_redis_is(facts: dict[str, int], share: float) -> None:
    assert share_used(facts) == share


def test_rows_that_a_stalled_beat_read_long_ago_are_not_put_in_but_read_again(
    loader: Loader, window: Window, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(due=utcnow())
    with monkeypatch.context() as stalled:
        stalls_after_reading(stalled)
        with pytest.raises(Stale):
            loader.run_once()
        assert popped(window) == []
    loader.run_once()
    assert popped(window) == [run]


def stalls_after_reading(monkeypatch: pytest.MonkeyPatch) -> None:
    later = monotonic() + FRESH_S + 1
    monkeypatch.setattr(freshness, "monotonic", lambda: later)
