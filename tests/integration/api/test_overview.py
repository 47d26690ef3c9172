"""The overview over REST: whose runs are in it, what it costs, and what is left where a part is away."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from beat.ownership import Ownership
from executions.history import append_history
from executions.models import Minute, Trouble
from executions.presence import PresentWorker, announce
from executions.store import Store
from executions.transitions import record
from scheduler_project.dashboard import overview as made
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.sharing import Shared
from tests.integration.api.conftest import create
from tests.integration.executions.brokers import use_broker
from tests.integration.making import COMPLETED, FAILED, QUEUED, STARTED, make_run, said, stored_spec

pytestmark = pytest.mark.django_db
SECOND = timedelta(seconds=1)
NOWHERE = "redis://127.0.0.1:1/0"


@pytest.fixture(autouse=True)
def _fresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    Minute.objects.all().delete()
    Trouble.objects.all().delete()
    monkeypatch.setattr(made, "_shared", Shared(0.0))
    monkeypatch.setattr(made, "_queue_names", Shared(0.0))
    made._store.cache_clear()
    yield
    made._store.cache_clear()


def overview(client: APIClient) -> dict[str, Any]:
    answer = client.get("/api/v1/overview")
    assert answer.status_code == 200, answer.content
    found: dict[str, Any] = answer.json()
    return found


def happen(owner: str) -> None:
    """A run of the team that completes, one that fails, one under way, and one that waits."""
    now, team = utcnow(), Group.objects.get(name=owner).id
    spec = stored_spec(owner=owner, owner_id=team, job_name=f"of {owner}")
    well, ill, busy = (make_run(spec, due=now, owner_id=team) for _ in range(3))
    make_run(spec, due=now + timedelta(hours=1), owner_id=team)
    events = [said(QUEUED, well, at=now), said(STARTED, well, at=now + SECOND / 10), said(COMPLETED, well)]
    events += [said(FAILED, ill, reason="out_of_memory"), said(STARTED, busy, worker="w1")]
    append_history(events)
    record(events, now)


def test_each_sees_the_runs_of_his_teams_and_superusers_all(
    root: APIClient, member: APIClient, outsider: APIClient, store: Store
) -> None:
    announce(store, PresentWorker("w1", ["runs"], 8))
    Ownership(store, "beat", 16, timedelta(minutes=1)).renew()
    for owner in ("data-engineering", "marketing"):
        happen(owner)
    everything = overview(root)
    assert everything["away"] == []
    assert [beat["name"] for beat in everything["beats"]] == ["beat"]
    assert (everything["hour"]["completedNormally"], everything["hour"]["completedAbnormally"]) == (2, 2)
    assert everything["hour"]["running"] == 2
    assert len(everything["minutes"]) == 60
    for client, own in ((member, "data-engineering"), (outsider, "marketing")):
        found = overview(client)
        assert (found["hour"]["completedNormally"], found["hour"]["completedAbnormally"]) == (1, 1)
        assert found["hour"]["running"] == 1
        (worker,) = found["workers"]
        assert [run["jobName"] for run in worker["running"]] == [f"of {own}"]
        assert worker["runningOfOtherTeams"] == 1
        assert [run["owner"] for run in found["nextRuns"]] == [own]
        assert [(item["reason"], item["attempts"]) for item in found["failures"]] == [("out_of_memory", 1)]
        other = {"data-engineering", "marketing"} - {own}
        assert other.pop() not in str(found)


def test_without_redis_or_broker_the_rest_is_there_and_they_are_named(root: APIClient, settings: Any) -> None:
    create(root)
    settings.REDIS_URL = NOWHERE
    without_redis = overview(root)
    assert (without_redis["away"], without_redis["beats"], without_redis["unownedShards"]) == (
        ["redis"],
        None,
        None,
    )
    assert len(without_redis["nextRuns"]) == 1
    use_broker(settings, "pyamqp://guest:guest@127.0.0.1:1//")
    without_both = overview(root)
    assert (without_both["away"], without_both["queues"]) == (["broker", "redis"], None)
    assert len(without_both["minutes"]) == 60


def test_it_needs_a_login(anonymous: APIClient) -> None:
    for path in ("overview", "calendar", "calendar/minute?at=2027-01-01T00:00:00Z"):
        assert anonymous.get(f"/api/v1/{path}").status_code == 401


def test_it_counts_no_runs_and_costs_the_same_however_many_there_are(
    root: APIClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    costs = []
    overview(root)  # the use of its token is written now, and not again within the minute
    for _ in range(2):
        for _ in range(5):
            create_run_of_everything()
        with CaptureQueriesContext(connection) as done:
            overview(root)
        costs.append(len(done))
        of_runs = [
            query["sql"] for query in done.captured_queries if "FROM executions_execution " in query["sql"]
        ]
        assert all("LIMIT" in sql for sql in of_runs), of_runs
    assert costs[0] == costs[1] <= 14
    monkeypatch.setattr(made, "_shared", Shared(60.0))
    overview(root)
    with CaptureQueriesContext(connection) as done:
        overview(root)
    assert len(done) <= 2  # who asks


def create_run_of_everything() -> None:
    Group.objects.get_or_create(name="data-engineering")
    happen("data-engineering")
