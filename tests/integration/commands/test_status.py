"""``manage.py status``"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import User

from beat.ownership import Ownership
from executions.attendance import ATTENDED, Attendance, attending
from executions.auditor import auditor
from executions.bus.connection import broker_errors
from executions.models import Execution
from executions.presence import PresentWorker, announce, withdraw
from executions.recorder import recorder
from executions.store import Store
from executions.transitions import record
from jobs.models import Job
from scheduler_project.dashboard import overview
from scheduler_project.kernel.clock import monotonic, utcnow
from scheduler_project.kernel.sharing import Shared
from tests.integration.access.conftest import rest_of
from tests.integration.commands.conftest import Manage
from tests.integration.executions.brokers import use_broker
from tests.integration.making import QUEUED, STARTED, make_run, said, stored_spec

Making = Callable[..., Job]


@pytest.fixture
def run(new_job: Making, store: Store, settings: Any) -> Iterator[Execution]:
    """A run under way, on a worker that is there, while a beat, a recorder and an auditor are alive."""
    consumers = [recorder(), auditor()]
    for consumer in consumers:
        consumer._connect()
    Ownership(store, "beat-1", settings.PUNCTUAL_SHARDS, timedelta(minutes=1)).renew()
    announce(store, PresentWorker("worker-1", ["runs"], 8))
    run = Execution.objects.get(job_id=new_job(schedule="now").id)
    record([said(STARTED, run.id, worker="worker-1")], utcnow())
    yield run
    for consumer in consumers:
        consumer.close()


def test_it_says_who_is_there_and_what_runs_where(manage: Manage, run: Execution, settings: Any) -> None:
    told = manage("status", "--json").json
    (beat,) = told["beats"]
    assert (beat["name"], len(beat["shards"])) == ("beat-1", settings.PUNCTUAL_SHARDS)
    (worker,) = told["workers"]
    assert (worker["name"], worker["present"], worker["slots"]) == ("worker-1", True, 8)
    assert [running["executionId"] for running in worker["running"]] == [str(run.id)]
    assert (told["hour"]["running"], told["away"], told["unownedShards"]) == (1, [], [])
    assert {"queue": "runs", "priority": "normal"}.items() <= told["queues"][1].items()
    assert {own["queue"] for own in told["systemQueues"]} >= {"punctual.recorder", "punctual.auditor"}


def test_it_says_in_json_what_the_overview_of_rest_says(
    manage: Manage, run: Execution, root: User, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(overview, "_shared", Shared(0.0))
    monkeypatch.setattr(overview, "_queue_names", Shared(0.0))
    told = manage("status", "--json").json
    api = rest_of(root).get("/api/v1/overview").json()
    del told["at"]
    assert told == {name: api[name] for name in told}
    assert api.keys() - told.keys() == {"at", "minutes", "failures", "late", "nextRuns"}


def test_it_fits_eighty_columns(manage: Manage, run: Execution, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    shown = manage("status", terminal=True).out
    assert max(map(len, shown.splitlines())) <= 100
    assert "beat-1" in shown and "worker-1" in shown and "1/8" in shown and "ops/nightly" in shown


def test_what_nobody_owns_is_named(manage: Manage, run: Execution, store: Store) -> None:
    store.batch(lambda pipe: pipe.delete(store.key(3, "owner")))
    assert manage("status", "--json").json["unownedShards"] == [3]
    assert "nobody owns the shards 3" in manage("status").out


def test_it_ends_with_what_keeps_runs_from_starting(manage: Manage, run: Execution, store: Store) -> None:
    fine = manage("status")
    assert (fine.code, fine.out.splitlines()[-1]) == (0, "Nothing keeps runs from starting.")
    withdraw(store, "worker-1")
    alone = manage("status")
    assert (alone.code, alone.out.splitlines()[-1]) == (1, "No worker is alive: nothing starts.")
    assert "gone: worker-1" in alone.out
    store.batch(lambda pipe: pipe.delete(store.shared_key("beats")))
    told = manage("status", "--json")
    assert (told.code, [text.split(":")[0] for text in told.json["obstacles"]][-1]) == (
        1,
        "No worker is alive",
    )


def test_a_queue_that_nobody_serves_is_named_with_what_waits(manage: Manage, run: Execution) -> None:
    sent = make_run(stored_spec(queue="gpu"))
    record([said(QUEUED, sent)], utcnow())
    told = manage("status")
    assert told.code == 1
    assert "1 run due and not started, 0 of them not sent (gpu: 1)" in told.out
    assert "1 run for the queue 'gpu' cannot start: no worker takes from it." in told.out


def test_others_see_no_run_of_a_team_that_they_are_not_in(
    manage: Manage, run: Execution, member_of: Callable[..., User]
) -> None:
    member_of("otto", "marketing")
    told = manage("status", "--user", "otto", "--json").json
    assert told["hour"]["running"] == 0
    assert [(worker["running"], worker["runningOfOtherTeams"]) for worker in told["workers"]] == [([], 1)]
    assert "nightly" not in manage("status", "--user", "otto").out


def test_without_the_broker_the_rest_is_told(manage: Manage, run: Execution, settings: Any) -> None:
    use_broker(settings, "pyamqp://guest:hidden@127.0.0.1:1//")
    try:
        answer = manage("status", "--json")
    finally:
        broker_errors.cache_clear()
    assert (answer.code, answer.json["queues"], answer.json["hour"]["running"]) == (4, None, 1)
    assert answer.json["away"] == ["broker"]
    assert "hidden" not in answer.out


def test_over_redis_it_tells_that_no_recorder_runs(
    manage: Manage, run: Execution, store: Store, settings: Any
) -> None:
    use_broker(settings, settings.REDIS_URL)
    try:
        alone = manage("status")
        there = [Attendance(store, queue) for queue in ATTENDED]
        until = monotonic() + 10
        while (found := attending(store)) and not all(found.values()):
            assert monotonic() < until
        fine = manage("status", "--json").json
        for each in there:
            each.close()
    finally:
        broker_errors.cache_clear()
    assert alone.code == 1
    assert "No recorder is running" in alone.out and "No auditor is running" in alone.out
    assert fine["obstacles"] == []
    assert {
        own["queue"]: own["consumers"] for own in fine["systemQueues"] if own["queue"] in ATTENDED
    } == dict.fromkeys(ATTENDED, 1)
    assert attending(store) == {queue: [] for queue in ATTENDED}
