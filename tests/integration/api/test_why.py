"""Why is a run not running: asked over REST, of the real PostgreSQL, Redis and brokers."""

from __future__ import annotations

from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from rest_framework.test import APIClient

from beat.ownership import Ownership
from executions import why
from executions.attendance import Attendance, attending
from executions.bus.connection import broker_errors, connect
from executions.bus.topology import RECORDER, declare, work_queue
from executions.claims import Claims
from executions.entries import Entry, Popped
from executions.events import Event
from executions.history import append_history
from executions.log_places import log_store
from executions.models import Execution
from executions.pools import Pools, Waiter, pools_of, rank
from executions.presence import PresentWorker, announce
from executions.priorities import Priority
from executions.runspecs import Spec
from executions.states import EventType
from executions.store import Store
from jobs.changes import settle
from scheduler_project.kernel.clock import monotonic, to_millis, utcnow
from tests.integration.api.conftest import create, problem_of
from tests.integration.api.test_executions import happen
from tests.integration.executions.brokers import assert_waiting, use_broker

pytestmark = pytest.mark.django_db
LEASE = timedelta(seconds=30)
QUEUE = "why-test"


@pytest.fixture
def beat(store: Store) -> Ownership:
    found = Ownership(store, "beat-1", 16, LEASE)
    found.renew()
    return found


def causes(client: APIClient, run: str) -> list[dict[str, Any]]:
    answer = client.get(f"/api/v1/executions/{run}/why")
    assert answer.status_code == 200, answer.content
    body = answer.json()
    assert body["summary"] == body["causes"][0]["sentence"]
    found: list[dict[str, Any]] = body["causes"]
    return found


def codes(client: APIClient, run: str) -> list[str]:
    return [cause["code"] for cause in causes(client, run)]


def sent(client: APIClient, **fields: Any) -> str:
    """A run that the workers of QUEUE have been sent."""
    run = str(create(client, **{"schedule": "now", "queue": QUEUE, **fields})["firstExecutionId"])
    happen(run, EventType.QUEUED)
    return run


def waiter(run: str) -> Waiter:
    found = Execution.objects.select_related("spec").get(id=run)
    spec = Spec.from_json(found.spec.body)
    entry = Entry(execution_id=found.id, spec_id=found.spec_id, attempt=1, due=found.scheduled_for)
    return Waiter(Popped(entry.member), pools_of(spec), rank(Priority.NORMAL, to_millis(found.scheduled_for)))


def test_before_its_time_and_without_a_beat(member: APIClient, store: Store) -> None:
    made = create(member)
    assert codes(member, made["firstExecutionId"]) == ["not_due", "no_beat"]
    Ownership(store, "beat-1", 16, LEASE).renew()
    (cause,) = causes(member, made["firstExecutionId"])
    assert cause["code"] == "not_due"
    assert cause["at"] == made["nextRunAt"]


def test_a_shard_whose_beat_is_gone(member: APIClient, store: Store) -> None:
    run = create(member, schedule="now")["firstExecutionId"]
    Ownership(store, "beat-1", 0, LEASE).renew()  # it lives, and owns nothing
    assert codes(member, run) == ["shard_without_beat"]


def test_a_due_run_is_sent_in_a_moment(member: APIClient, beat: Ownership) -> None:
    run = create(member, schedule="now")["firstExecutionId"]
    (cause,) = causes(member, run)
    assert (cause["code"], cause["facts"]) == ("being_sent", {"beat": "beat-1"})


def test_its_job_is_paused(member: APIClient, beat: Ownership) -> None:
    made = create(member)
    member.post(f"/api/v1/jobs/{made['jobId']}/pause")
    settle(UUID(made["jobId"]), utcnow())
    assert codes(member, made["firstExecutionId"]) == ["job_paused"]


def test_the_back_off_after_a_failure(member: APIClient, beat: Ownership) -> None:
    run = create(member, schedule="now", retries=1, retryDelay="5m")["firstExecutionId"]
    happen(run, EventType.STARTED, worker="w1")
    happen(run, EventType.FAILED, reason="failed", exit_code=3, message="exit code 3")
    (cause,) = causes(member, run)
    assert cause["code"] == "back_off"
    assert cause["sentence"].startswith("Attempt 1 failed: exit code 3")
    shown = member.get(f"/api/v1/executions/{run}").json()
    assert shown["explanation"].startswith("Its program failed.")


def test_no_worker_then_full_ones_then_others_before_it(
    member: APIClient, beat: Ownership, store: Store
) -> None:
    run = sent(member)
    (cause,) = causes(member, run)
    assert (cause["code"], cause["facts"]) == ("no_worker", {"queue": QUEUE})
    announce(store, PresentWorker("w1", [QUEUE], 2, busy=2))
    assert codes(member, run) == ["workers_full"]
    announce(store, PresentWorker("w1", [QUEUE], 2, busy=1))
    assert codes(member, run) == ["in_queue"]


def test_how_many_wait_before_it(member: APIClient, beat: Ownership, store: Store) -> None:
    queue = "why-behind"  # answers about a queue are kept for a second
    announce(store, PresentWorker("w1", [queue], 2, busy=2))
    names = (queue, f"{queue}.high")
    with connect(confirm=True) as connection, connection.channel() as channel:
        for name in names:
            declare(work_queue(name), channel)
            for _ in range(2):
                connection.Producer(channel).publish({}, exchange=name, routing_key=name)
    assert_waiting(4, *names)
    full, before = causes(member, sent(member, queue=queue))
    assert (full["code"], before["code"]) == ("workers_full", "in_queue")
    assert before["facts"] == {"queue": queue, "ahead": 3}


def test_a_place_in_a_pool_with_who_has_it(root: APIClient, beat: Ownership, store: Store) -> None:
    root.post("/api/v1/pools", {"name": "warehouse", "slots": 1}, format="json")
    pools = Pools(store, LEASE)
    pools.write_limits({"pool:warehouse": 1})
    holder, waits = (sent(root, name=name, pool="warehouse") for name in ("first", "second"))
    for run in (holder, waits):
        pools.enter(waiter(run))
    (cause,) = causes(root, waits)
    assert cause["code"] == "pool_full"
    assert cause["runs"] == [{"id": holder, "jobName": "first", "status": "Waiting"}]
    assert cause["facts"] == {"pool": "pool:warehouse", "limit": 1, "ahead": 0}


def test_the_run_before_it(member: APIClient, beat: Ownership) -> None:
    made = create(member, schedule={"every": "1h"}, overlap="replace")
    first = made["firstExecutionId"]
    happen(first, EventType.STARTED, worker="w1")
    (held,) = Execution.objects.filter(job_id=made["jobId"]).exclude(id=first)
    (cause,) = causes(member, str(held.id))
    assert cause["code"] == "waits_for_run"
    assert [run["id"] for run in cause["runs"]] == [first]


def test_a_backfill_waits_for_its_rate_and_its_own(member: APIClient, beat: Ownership) -> None:
    made = create(member, schedule="0 * * * *")
    until = utcnow() - timedelta(hours=1)
    asked = {"from": (until - timedelta(hours=3)).isoformat(), "to": until.isoformat()}
    answer = member.post(f"/api/v1/jobs/{made['jobId']}/backfill", asked, format="json")
    assert answer.status_code == 201, answer.content
    first, second, *_ = Execution.objects.filter(job_id=made["jobId"], trigger="backfill").order_by("id")
    assert codes(member, str(second.id)) == ["catching_up"]
    Execution.objects.filter(id=first.id).update(check_at=utcnow())  # it was given leave
    (cause,) = causes(member, str(second.id))
    assert (cause["code"], cause["facts"]) == ("waits_for_run", {"maxActive": 1, "underWay": 1})


def test_its_image_and_a_worker_that_is_gone(member: APIClient, beat: Ownership, store: Store) -> None:
    run = create(member, schedule="now")["firstExecutionId"]
    happen(run, EventType.STARTED, worker="w1")
    assert codes(member, run) == ["worker_gone"]
    Claims(store, "w1", LEASE).claim(UUID(run), 1)
    assert codes(member, run) == ["running"]
    writer = log_store().writer(UUID(run), 1)
    writer.note("pulling the image alpine: 1 of 3 layers")
    writer.write(b"")
    assert codes(member, run) == ["image_pull"]
    writer.write(b"here we go\n")
    writer.close()
    assert codes(member, run) == ["running"]


def test_what_a_worker_has_begun_and_nobody_has_recorded(
    member: APIClient, beat: Ownership, store: Store
) -> None:
    run = sent(member)
    Claims(store, "w1", LEASE).claim(UUID(run), 1)
    assert codes(member, run)[0] == "begun_unrecorded"
    append_history([Event(type=EventType.COMPLETED, execution_id=UUID(run), attempt=1, at=utcnow())])
    assert codes(member, run)[0] == "ended_unrecorded"


def test_over_redis_nobody_records_what_a_worker_has_begun(
    member: APIClient, beat: Ownership, store: Store, settings: Any
) -> None:
    use_broker(settings, settings.REDIS_URL)
    run = Execution.objects.get(id=create(member, schedule="now")["firstExecutionId"])
    try:
        alone = why.gather(run)
        present = Attendance(store, RECORDER)
        until = monotonic() + 10
        while not attending(store)[RECORDER]:
            assert monotonic() < until
        attended = why.gather(run)
        present.close()
    finally:
        broker_errors.cache_clear()
    assert [facts.recorder and facts.recorder.consumers for facts in (alone, attended)] == [0, 1]


def test_parts_that_are_away_are_causes_and_take_no_longer_than_a_second(
    member: APIClient, beat: Ownership, settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = create(member, schedule="now")["firstExecutionId"]
    use_broker(settings, "pyamqp://127.0.0.1:1//")
    began = monotonic()
    assert codes(member, run) == ["broker_away"]
    nobody = Store("redis://127.0.0.1:1/0", "nobody", timeout_s=0.5)
    monkeypatch.setattr(why, "hasty_store", lambda: nobody)
    assert codes(member, run) == ["redis_away"]
    assert monotonic() - began < 2


def test_an_end_is_explained_and_other_teams_ask_in_vain(member: APIClient, outsider: APIClient) -> None:
    run = create(member)["firstExecutionId"]
    member.post(f"/api/v1/executions/{run}/cancel")
    (cause,) = causes(member, run)
    assert cause["sentence"] == "It has ended: Cancelled. Somebody cancelled it."
    problem_of(outsider.get(f"/api/v1/executions/{run}/why"), 404)
    problem_of(member.get(f"/api/v1/executions/{run}/why?x=1"), 400)
