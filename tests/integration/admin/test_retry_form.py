"""The retry policy in the form of a job: a field for each of its parts, and the same policy as over REST."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth.models import Group
from django.db import connection
from django.test import Client

from access.audit import changes_of
from executions.retry_policies import RETRIED
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from tests.integration.admin.conftest import Browser

pytestmark = pytest.mark.django_db

JOBS = "/admin/jobs/job/"
FORM = {
    "name": "nightly",
    "owner": "data-engineering",
    "type": "Script",
    "command": "true",
    "schedule": "0 2 * * *",
    "retries": "2",
    "retryDelay": "30s",
}
EXPONENTIAL = {"retryBackoff": "exponential"}
FULL = {
    "backoff": "exponential",
    "factor": 1.5,
    "maxDelay": "1h30m",
    "jitter": 0.25,
    "reasons": ["out_of_memory", "timed_out"],
    "exitCodes": [1, 75, 100, 101, 102],
    "maxElapsed": "6h",
}


@pytest.fixture
def root(browser_of: Browser) -> Client:
    Group.objects.create(name="data-engineering")
    return browser_of("root", is_superuser=True)


def rest(browser: Client, method: str, path: str = "", **body: Any) -> dict[str, Any]:
    answer = browser.generic(method, f"/api/v1/jobs{path}", json.dumps(body), content_type="application/json")
    assert answer.status_code < 300, answer.content
    found: dict[str, Any] = answer.json()
    return found


def job_over_rest(browser: Client, policy: dict[str, Any]) -> Job:
    body: dict[str, Any] = {**FORM, "retries": 2, "retryPolicy": policy}
    made = rest(browser, "POST", **body)
    return Job.objects.get(id=made["jobId"])


def shown(browser: Client, job: Job) -> dict[str, Any]:
    """What the form's fields hold as a browser would send it back."""
    form = browser.get(f"{JOBS}{job.id}/change/").context["adminform"].form
    values = {bound.name: bound.field.prepare_value(bound.value()) for bound in form}
    return {name: value for name, value in values.items() if value is not None}


def send(browser: Client, job: Job, fields: dict[str, Any]) -> None:
    answer = browser.post(f"{JOBS}{job.id}/change/", fields)
    assert answer.status_code == 302, answer.context["adminform"].form.errors


def stored(job: Job) -> str:
    """The policy as the database has it, to the byte."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT retry_policy::text FROM jobs_job WHERE id = %s", [job.id])
        row = cursor.fetchone()
        assert row is not None
        return str(row[0])


@pytest.mark.parametrize(
    ("fields", "policy"),
    [
        ({}, {}),
        ({"retryBackoff": "fixed"}, {}),
        (EXPONENTIAL, {"backoff": "exponential"}),
        ({**EXPONENTIAL, "retryFactor": "3"}, {"backoff": "exponential", "factor": 3.0}),
        ({**EXPONENTIAL, "retryFactor": " 2.0 "}, {"backoff": "exponential"}),
        ({**EXPONENTIAL, "retryMaxDelay": "90m"}, {"backoff": "exponential", "maxDelay": "1h30m"}),
        ({"retryJitter": "0.2"}, {"jitter": 0.2}),
        ({"retryJitter": ".5"}, {"jitter": 0.5}),
        ({"retryReasons": ["timed_out", "failed"]}, {"reasons": ["failed", "timed_out"]}),
        ({"retryExitCodes": "75, 1, 100-102, 75"}, {"exitCodes": [1, 75, 100, 101, 102]}),
        ({"retryMaxElapsed": "6h"}, {"maxElapsed": "6h"}),
    ],
)
def test_each_field_is_a_part_of_the_policy_and_an_empty_one_is_its_default(
    root: Client, fields: dict[str, Any], policy: dict[str, Any]
) -> None:
    answer = root.post(f"{JOBS}add/", {**FORM, **fields})
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    job = Job.objects.get()
    assert job.retry_policy == policy
    assert rest(root, "GET", f"/{job.id}")["retryPolicy"] == policy


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("retryBackoff", "linear", "linear is not one of"),
        ("retryFactor", "11", "11 is not a number from 1 to 10"),
        ("retryFactor", "two", "'two' is not a number from 1 to 10"),
        ("retryFactor", "nan", "'nan' is not a number"),
        ("retryMaxDelay", "soon", "'soon' is not a length of time"),
        ("retryMaxDelay", "0s", "'0s' is not between 1ms and"),
        ("retryJitter", "2", "2 is not a number from 0 to 1"),
        ("retryJitter", "0,2", "'0,2' is not a number from 0 to 1"),
        ("retryJitter", "9" * 1001, "at most 1000 characters"),
        ("retryReasons", ["failed", "lost"], "'lost' is not one of failed, timed_out"),
        ("retryExitCodes", "1, x", "'x' is not an exit code"),
        ("retryExitCodes", "0", "whole numbers from 1 to 255"),
        ("retryExitCodes", "1-255", "255 items; at most 100"),
        ("retryMaxElapsed", "a day", "'a day' is not a length of time"),
    ],
)
def test_what_is_wrong_is_told_at_its_field_and_nothing_is_made(
    root: Client, field: str, value: Any, said: str
) -> None:
    answer = root.post(f"{JOBS}add/", {**FORM, **EXPONENTIAL, field: value})
    errors = answer.context["adminform"].form.errors
    assert list(errors) == [field]
    assert said in " ".join(errors[field])
    assert "retryPolicy" not in " ".join(errors[field])
    assert not Job.objects.exists()


@pytest.mark.parametrize("field", ["retryFactor", "retryMaxDelay"])
def test_what_is_for_exponential_back_off_is_refused_with_fixed_pauses(root: Client, field: str) -> None:
    answer = root.post(f"{JOBS}add/", {**FORM, field: "3"})
    errors = answer.context["adminform"].form.errors
    assert list(errors) == [field]
    assert "It is for backoff 'exponential'" in errors[field][0]


def test_all_that_is_wrong_is_told_at_once_and_what_was_typed_stays(root: Client) -> None:
    wrong = {"name": "", "retryFactor": "x", "retryReasons": ["a", "b"], "retryExitCodes": "y"}
    answer = root.post(f"{JOBS}add/", {**FORM, **EXPONENTIAL, **wrong})
    form = answer.context["adminform"].form
    assert set(form.errors) == set(wrong)
    assert len(form.errors["retryReasons"]) == 2
    assert form["retryExitCodes"].value() == "y"


def test_a_policy_of_rest_fills_the_fields(root: Client) -> None:
    fields = shown(root, job_over_rest(root, FULL))
    assert {name: value for name, value in fields.items() if name.startswith("retry")} == {
        "retryDelay": "30s",
        "retryBackoff": "exponential",
        "retryFactor": "1.5",
        "retryMaxDelay": "1h30m",
        "retryJitter": "0.25",
        "retryReasons": ["out_of_memory", "timed_out"],
        "retryExitCodes": "1, 75, 100-102",
        "retryMaxElapsed": "6h",
    }


@pytest.mark.parametrize(
    "policy",
    [
        {},
        FULL,
        {"jitter": 0.1 + 0.2},
        {"jitter": 1e-7},
        {"jitter": 1},
        {"backoff": "exponential", "factor": 10, "maxDelay": "1ms"},
        {"reasons": sorted(RETRIED), "exitCodes": list(range(1, 200, 2))},
    ],
)
def test_a_policy_is_the_same_to_the_byte_after_another_field_is_edited(
    root: Client, policy: dict[str, Any]
) -> None:
    job = job_over_rest(root, policy)
    before = stored(job)
    send(root, job, {**shown(root, job), "description": "edited"})
    job.refresh_from_db()
    assert (job.description, stored(job)) == ("edited", before)
    assert set(changes_of(job, 1)[0].fields) == {"description"}
    body = rest(root, "GET", f"/{job.id}")
    assert rest(root, "PATCH", f"/{job.id}", retryPolicy=body["retryPolicy"])["retryPolicy"] == policy


@pytest.mark.parametrize("policy", [FULL, {"jitter": 0.1 + 0.2}, {"jitter": 1e-7}])
def test_what_the_fields_show_is_read_back_as_the_same_policy(root: Client, policy: dict[str, Any]) -> None:
    """Also where all of it is read anew, as of a copy."""
    job = job_over_rest(root, policy)
    assert root.post(f"{JOBS}add/", {**shown(root, job), "name": "copy"}).status_code == 302
    assert stored(Job.objects.get(name="copy")) == stored(job)


def test_a_copy_begins_with_the_policy(root: Client) -> None:
    job = job_over_rest(root, FULL)
    form = root.get(f"{JOBS}add/?from={job.id}").context["adminform"].form
    assert (form["retryExitCodes"].value(), form["retryFactor"].value()) == ("1, 75, 100-102", "1.5")


def test_a_change_is_kept_told_in_a_sentence_and_readable_in_the_trail(root: Client) -> None:
    job = job_over_rest(root, {"backoff": "exponential", "maxElapsed": "6h"})
    fields = shown(root, job)
    send(root, job, {**fields, "retryReasons": ["timed_out"], "retryMaxElapsed": "", "retryExitCodes": "3-5"})
    job.refresh_from_db()
    assert job.retry_policy == {"backoff": "exponential", "reasons": ["timed_out"], "exitCodes": [3, 4, 5]}
    sentence = "up to 2 times, after 30s, 1m; only after timed out or after exit codes 3-5"
    assert sentence in root.get(f"{JOBS}{job.id}/change/").content.decode()
    changed = changes_of(job, 1)[0].fields
    assert changed["retryPolicy.maxElapsed"] == ("6h", None)
    assert changed["retryPolicy.exitCodes"] == (None, [3, 4, 5])
    Job.objects.update(archived_at=utcnow())
    assert sentence in root.get(f"{JOBS}{job.id}/change/").content.decode()


def test_every_reason_is_there_in_words(root: Client) -> None:
    page = root.get(f"{JOBS}add/").content.decode()
    assert page.count('name="retryReasons"') == len(RETRIED)
    assert "<b>out of memory</b> It needed more memory than its limit." in page
    assert 'name="retryPolicy"' not in page


@pytest.mark.parametrize(
    ("policy", "field"),
    [({"jitter": "high"}, "retryJitter"), ({"exitCodes": [0, "x"]}, "retryExitCodes"), ({"more": 1}, None)],
)
def test_a_policy_that_was_written_past_the_rules_is_shown_and_never_dropped_unseen(
    root: Client, policy: dict[str, Any], field: str | None
) -> None:
    job = job_over_rest(root, {})
    Job.objects.update(retry_policy=policy)
    name = next(iter(policy))
    assert f"retryPolicy.{name}" in root.get(f"{JOBS}{job.id}/change/").content.decode()
    fields = shown(root, job)
    answer = root.post(f"{JOBS}{job.id}/change/", {**fields, "description": "edited"})
    errors = answer.context["adminform"].form.errors
    assert list(errors) == [field or "__all__"]
    send(root, job, {**fields, "retryJitter": "0.5", "retryExitCodes": ""})
    job.refresh_from_db()
    assert job.retry_policy == {"jitter": 0.5}


@pytest.mark.parametrize("policy", [None, [], "text", {"exitCodes": 7, "reasons": {"a": 1}, "factor": None}])
def test_a_page_of_whatever_policy_comes(root: Client, policy: Any) -> None:
    job: UUID = job_over_rest(root, {}).id
    with connection.cursor() as cursor:
        cursor.execute("UPDATE jobs_job SET retry_policy = %s::jsonb", [json.dumps(policy)])
    assert root.get(f"{JOBS}{job}/change/").status_code == 200
