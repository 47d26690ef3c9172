"""Runs that somebody asks for: now with other parameters, and of a span of the past."""

from __future__ import annotations

from datetime import datetime, timedelta
from threading import Barrier, Thread
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from rest_framework.test import APIClient

from executions.holding import held
from executions.models import Execution
from jobs import backfills
from jobs.models import Job, RequestedRun
from jobs.runs import RunRequest, StartedRun, run_job
from scheduler_project.kernel.clock import utcnow
from tests.integration.api.conftest import ClientOf, create, problem_of
from tests.integration.executions.test_transitions import in_threads

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


def run(client: APIClient, job_id: str, body: dict[str, Any] | None = None, key: str | None = None) -> Any:
    headers = {} if key is None else {"Idempotency-Key": key}
    return client.post(f"/api/v1/jobs/{job_id}/run", body or {}, format="json", headers=headers)


def test_parameters_of_a_run_are_laid_over_the_jobs(member: APIClient) -> None:
    made = create(member, parameters={"region": "EU", "day": "{{ ds }}"})
    answer = run(member, made["jobId"], {"parameters": {"day": "2026-11-29", "limit": 5}})
    assert answer.status_code == 201
    found = member.get(answer["Location"]).json()
    assert found["parameters"] == {"region": "EU", "day": "2026-11-29", "limit": 5}
    assert member.get(f"/api/v1/jobs/{made['jobId']}").json()["parameters"] == {
        "region": "EU",
        "day": "{{ ds }}",
    }


@pytest.mark.parametrize(
    "given",
    [
        {"parameters": []},
        {"parameters": {"not a name": 1}},
        {"parameters": {"day": "{{ nothing"}},
        {"parameters": {"Region": "US"}},  # beside the job's own: both would be PARAM_REGION
        {"params": {}},
    ],
    ids=str,
)
def test_parameters_are_checked_like_a_jobs(member: APIClient, given: dict[str, Any]) -> None:
    made = create(member, parameters={"region": "EU"})
    problem = problem_of(run(member, made["jobId"], given), 400)
    assert set(problem["errors"]) == set(given)
    assert Execution.objects.filter(trigger="manual").count() == 0


def test_the_same_key_gives_the_same_run(member: APIClient) -> None:
    made, other = create(member), create(member, name="another")
    body = {"parameters": {"a": 1, "b": 2}}
    first = run(member, made["jobId"], body, key="key-1")
    again = run(member, made["jobId"], {"parameters": {"b": 2, "a": 1}}, key="key-1")
    assert (first.status_code, again.status_code) == (201, 200)
    assert first.json() == again.json()
    assert first["Location"] == again["Location"]
    assert run(member, made["jobId"], body, key="key-2").json() != first.json()
    assert run(member, other["jobId"], body, key="key-1").status_code == 201  # a key is one job's
    assert Execution.objects.filter(trigger="manual").count() == 3


def test_a_key_that_was_used_for_another_request_is_a_409(member: APIClient) -> None:
    made = create(member)
    run(member, made["jobId"], {"parameters": {"a": 1}}, key="key-1")
    problem = problem_of(run(member, made["jobId"], {"parameters": {"a": 2}}, key="key-1"), 409)
    assert "'key-1'" in problem["detail"]


@pytest.mark.parametrize("key", ["", "with blanks", "ü", "x" * 256])
def test_a_key_is_visible_ascii(member: APIClient, key: str) -> None:
    problem = problem_of(run(member, create(member)["jobId"], {}, key=key), 400)
    assert set(problem["errors"]) == {"Idempotency-Key"}


def test_a_key_is_forgotten_with_its_run(member: APIClient, settings: Any) -> None:
    made = create(member)
    first = run(member, made["jobId"], key="key-1")
    RequestedRun.objects.update(created_at=utcnow() - settings.PUNCTUAL_RETENTION - HOUR)
    again = run(member, made["jobId"], {"parameters": {"a": 1}}, key="key-1")
    assert again.status_code == 201
    assert again.json() != first.json()


@pytest.mark.django_db(transaction=True)
def test_the_same_request_several_times_at_once_makes_one_run(client_of: ClientOf) -> None:
    made = create(client_of("root", is_superuser=True))
    job, together = Job.objects.select_related("owner", "spec").get(id=made["jobId"]), Barrier(4)
    answers: list[StartedRun] = []

    user = User.objects.get(username="root")

    def ask() -> None:
        try:
            connection.ensure_connection()
            together.wait()
            answers.append(run_job(job, user, utcnow(), RunRequest({"a": 1}, "key-1")))
        finally:
            connection.close()

    threads = [Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(answer.made for answer in answers) == [False, False, False, True]
    assert len({answer.execution_id for answer in answers}) == 1
    assert Execution.objects.filter(trigger="manual").count() == 1


# backfill


@pytest.fixture
def job_id(member: APIClient) -> str:
    """A job that runs every full hour."""
    return str(create(member, schedule="0 * * * *")["jobId"])


def span(hours: int = 5) -> dict[str, str]:
    """The last full hours; the end does not count."""
    end = utcnow().replace(minute=0, second=0, microsecond=0)
    return {"from": (end - hours * HOUR).isoformat(), "to": end.isoformat()}


def backfill(client: APIClient, job_id: str, body: dict[str, Any]) -> Any:
    return client.post(f"/api/v1/jobs/{job_id}/backfill", body, format="json")


def test_a_backfill_makes_the_fires_of_its_span_which_wait_for_leave(member: APIClient, job_id: str) -> None:
    answer = backfill(member, job_id, {**span(), "maxActive": 2})
    assert answer.status_code == 201
    body = answer.json()
    assert (body["dryRun"], body["maxActive"], body["count"], body["new"]) == (False, 2, 5, 5)
    rows = list(Execution.objects.filter(job_id=job_id, trigger="backfill").order_by("id"))
    assert [item["executionId"] for item in body["executions"]] == [str(row.id) for row in rows]
    assert [row.check_at for row in rows] == [held(row.scheduled_for) for row in rows]
    assert {(row.state, row.most_active) for row in rows} == {("Waiting", 2)}
    first = member.get(f"/api/v1/executions/{rows[0].id}").json()
    assert (first["trigger"], first["status"]) == ("backfill", "Waiting")


def test_a_dry_run_lists_what_would_be_made_and_makes_nothing(member: APIClient, job_id: str) -> None:
    answer = backfill(member, job_id, {**span(), "dryRun": True})
    assert answer.status_code == 200
    planned = answer.json()
    assert (planned["dryRun"], planned["count"], planned["new"]) == (True, 5, 5)
    assert Execution.objects.filter(trigger="backfill").count() == 0
    made = backfill(member, job_id, span()).json()
    assert made["executions"] == planned["executions"]
    assert backfill(member, job_id, {**span(), "dryRun": True}).json()["new"] == 0


def test_asking_twice_makes_nothing_new_and_a_longer_span_only_the_rest(
    member: APIClient, job_id: str
) -> None:
    backfill(member, job_id, span(3))
    again = backfill(member, job_id, span(3))
    assert (again.status_code, again.json()["new"]) == (200, 0)
    longer = backfill(member, job_id, span(5)).json()
    assert [item["new"] for item in longer["executions"]] == [True, True, False, False, False]
    assert Execution.objects.filter(trigger="backfill").count() == 5


@pytest.mark.django_db(transaction=True)
def test_backfills_that_overlap_at_once_count_each_run_as_new_once(client_of: ClientOf) -> None:
    made = create(client_of("root", is_superuser=True), schedule="0 * * * *")
    job, user = Job.objects.select_related("owner", "spec").get(id=made["jobId"]), User.objects.get()
    since, until = (datetime.fromisoformat(text) for text in span().values())
    new: list[bool] = []

    def ask() -> None:
        runs = backfills.backfill(job, backfills.BackfillRequest(since, until), user, utcnow())
        new.extend(run.new for run in runs)

    assert in_threads(*[ask] * 6) == []
    assert (len(new), sum(new)) == (30, 5)


def test_a_backfill_leaves_the_regular_chain_alone(member: APIClient, job_id: str) -> None:
    before = list(Execution.objects.filter(job_id=job_id).values_list("id", "check_at"))
    backfill(member, job_id, span())
    regular = Execution.objects.filter(job_id=job_id, trigger="schedule")
    assert list(regular.values_list("id", "check_at")) == before


def test_at_most_a_thousand_fires(member: APIClient) -> None:
    job_id = create(member, schedule="* * * * *")["jobId"]
    problem = problem_of(backfill(member, job_id, span(17)), 400)
    assert problem["errors"] == {
        "to": ["1,020 fires lie in this span; one request makes at most 1,000. Divide it."]
    }
    assert backfill(member, job_id, span(16)).json()["new"] == 960


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({"from": "2026-01-01T00:00:00Z"}, "to"),
        ({"to": "2999-01-01T00:00:00Z"}, "to"),
        ({"from": "2999-01-01T00:00:00Z"}, "to"),
        ({"from": "1999-01-01T00:00:00Z"}, "from"),
        ({"from": "yesterday"}, "from"),
        ({"from": 7}, "from"),
        ({"maxActive": 0}, "maxActive"),
        ({"maxActive": 101}, "maxActive"),
        ({"maxActive": True}, "maxActive"),
        ({"dryRun": "yes"}, "dryRun"),
        ({"until": "2026-01-01T00:00:00Z"}, "until"),
    ],
    ids=str,
)
def test_nonsense_is_refused_by_name(
    member: APIClient, job_id: str, given: dict[str, Any], field: str
) -> None:
    body = {**span(), **given}
    if field == "to" and "to" not in given and given["from"].startswith("2026"):
        del body["to"]
    problem = problem_of(backfill(member, job_id, body), 400)
    assert field in problem["errors"]
    assert Execution.objects.filter(trigger="backfill").count() == 0


def test_who_is_not_in_the_team_may_neither_run_nor_backfill(outsider: APIClient, job_id: str) -> None:
    problem_of(backfill(outsider, job_id, span()), 404)
    problem_of(run(outsider, job_id), 404)
