"""What jobs say of their containers: saved, refused, merged with their task's, moved from columns."""

from __future__ import annotations

import json
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.db import connection, transaction
from rest_framework.test import APIClient

from executions.models import RunSpec
from executions.store import Store
from jobs.changes import settle
from jobs.models import Job, Task
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.resources import read_queries
from tests.example_body import BODY
from tests.integration.api.conftest import ClientOf, create, problem_of

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def parts(db: None, store: Store) -> None:
    """Jobs need the database and Redis."""


def test_it_is_given_back_in_its_normal_form_and_is_in_the_snapshot(member: APIClient) -> None:
    given = {
        "resources": {"memory": {"limit": 512 << 20}, "gpu": None},
        "readOnlyRoot": True,
        "gracePeriod": 90,
    }
    made = create(member, container=given)
    normal = {"resources": {"memory": {"limit": "512Mi"}}, "gracePeriod": "1m30s"}
    assert member.get(f"/api/v1/jobs/{made['jobId']}").json()["container"] == normal
    assert Job.objects.get().spec.body["container"] == normal


def test_a_patch_replaces_it_as_a_whole_and_runs_follow(
    member: APIClient, django_capture_on_commit_callbacks: Any
) -> None:
    made = create(member, container={"user": "1000", "network": "none"})
    with django_capture_on_commit_callbacks(execute=True):
        answer = member.patch(f"/api/v1/jobs/{made['jobId']}", {"container": {"user": "7"}}, format="json")
    assert answer.json()["container"] == {"user": "7"}
    assert Job.objects.get().spec.body["container"] == {"user": "7"}
    assert member.patch(f"/api/v1/jobs/{made['jobId']}", {"retries": 1}, format="json").status_code == 200
    assert Job.objects.get().container == {"user": "7"}


def test_every_wrong_field_is_a_400_by_its_path(member: APIClient) -> None:
    container = {
        "resources": {"memory": {"limit": "12 potatoes"}, "cpu": {"limit": 0}},
        "volumes": [{"source": "/a"}],
        "secretEnv": {"A": "../etc/passwd"},
        "cpus": 1,
    }
    answer = member.post("/api/v1/jobs", {**BODY, "container": container, "retries": -1}, format="json")
    assert set(problem_of(answer, 400)["errors"]) == {
        "container.resources.memory.limit",
        "container.resources.cpu.limit",
        "container.volumes.0.target",
        "container.secretEnv.A",
        "container.cpus",
        "retries",
    }
    for limit in ("1e999", '"\\ud800"', '"1\\u0000"', "[" * 40 + "]" * 40):
        text = json.dumps({**BODY, "container": {"resources": {"cpu": {"limit": "HERE"}}}})
        body = text.replace('"HERE"', limit)
        answer = member.post("/api/v1/jobs", body, content_type="application/json")
        assert list(problem_of(answer, 400)["errors"]) == ["container.resources.cpu.limit"], limit
    twice = {**BODY, "env": {"A": "1"}, "container": {"secretEnv": {"A": "data-engineering/x"}}}
    answer = member.post("/api/v1/jobs", twice, format="json")
    assert list(problem_of(answer, 400)["errors"]) == ["container.secretEnv.A"]
    assert not Job.objects.exists()


def test_what_this_deployment_does_not_allow_is_refused_when_a_job_is_made_or_changed(
    member: APIClient, settings: Any
) -> None:
    settings.PUNCTUAL_ALLOW_IMAGES = ["registry.example.org/*"]
    settings.PUNCTUAL_IMAGES = {"Python": "python:3"}
    container = {"network": "host", "secretEnv": {"A": "other-team/x"}, "resources": {"gpu": 1}}
    body = {**BODY, "image": "evil:1", "container": container}
    errors = problem_of(member.post("/api/v1/jobs", body, format="json"), 400)["errors"]
    assert set(errors) == {
        "image",
        "container.network",
        "container.secretEnv.A",
        "container.resources.gpu",
    }
    assert "PUNCTUAL_ALLOW_IMAGES" in errors["image"][0]
    assert not Job.objects.exists() and not RunSpec.objects.exists()

    made = create(member, image="python:3", container={"secretEnv": {"A": "data-engineering/x"}})
    answer = member.patch(f"/api/v1/jobs/{made['jobId']}", {"container": {"network": "host"}}, format="json")
    assert list(problem_of(answer, 400)["errors"]) == ["container.network"]
    assert Job.objects.get().container == {"secretEnv": {"A": "data-engineering/x"}}


def test_no_team_gets_the_secrets_of_another_whose_name_is_alike(
    member: APIClient, client_of: ClientOf
) -> None:
    """Nor does it by making a team of such a name, or a blank in place of another sign."""
    founder = client_of("fay")
    User.objects.get(username="fay").user_permissions.add(Permission.objects.get(codename="add_group"))
    for client, owner, secret in (
        (member, "data-engineering", "Data-engineering/db"),
        (member, "data-engineering", "data_engineering/db"),
        (founder, "Data-engineering", "data-engineering/db"),
        (founder, "data engineering", "data-engineering/db"),
    ):
        body = {**BODY, "owner": owner, "container": {"secretEnv": {"A": secret}}}
        answer = client.post("/api/v1/jobs", body, format="json")
        [complaint] = problem_of(answer, 400)["errors"]["container.secretEnv.A"]
        assert "PUNCTUAL_ALLOW_SECRETS" in complaint
        assert ("rename the team" in complaint) == (" " in owner)
    assert not Job.objects.exists()


def test_a_jobs_container_goes_before_its_tasks(member: APIClient) -> None:
    limits = {"memory": {"request": "1Gi", "limit": "2Gi"}}
    create(member, container={"resources": {"memory": {"limit": "4Gi"}}})
    task = Task.objects.create(name="t", command="x", container={"resources": limits, "user": "1"})
    assert settled_with(task).spec.body["container"] == {
        "resources": {"memory": {"request": "1Gi", "limit": "4Gi"}},
        "user": "1",
    }


def test_what_is_written_past_the_services_and_makes_no_sense_is_the_jobs_problem(member: APIClient) -> None:
    create(member, container={"resources": {"memory": {"limit": "1Gi"}}})
    task = Task.objects.create(name="t", command="x", container={"resources": {"memory": {"request": "2Gi"}}})
    assert "container.resources.memory.request" in settled_with(task).problem
    Task.objects.update(container=[1])
    assert "with its task" in settled_with(task).problem
    Job.objects.update(container={"user": 3})
    assert "container.user" in settled_with(task).problem


def settled_with(task: Task) -> Job:
    job = Job.objects.get()
    Job.objects.filter(id=job.id).update(task=task)
    settle(job.id, utcnow())
    return Job.objects.select_related("spec").get()


def test_limits_of_tasks_move_from_their_columns_and_their_jobs_are_revised(member: APIClient) -> None:
    moves = read_queries("jobs.sql", "limits.sql")
    create(member)
    task, other = (Task.objects.create(name=name, command="x") for name in "ab")
    job = settled_with(task)
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("ALTER TABLE jobs_task ADD memory_bytes bigint, ADD cpus float8")
        cursor.execute("UPDATE jobs_task SET memory_bytes = 1073741824, cpus = 1.5 WHERE id = %s", [task.id])
        before = Job.objects.get().revision
        cursor.execute(moves["into_container"])
        assert Job.objects.get().revision > before
        task.refresh_from_db()
        other.refresh_from_db()
        limits = {"resources": {"memory": {"limit": 1 << 30}, "cpu": {"limit": 1.5}}}
        assert (task.container, other.container) == (limits, {})
        cursor.execute("UPDATE jobs_task SET memory_bytes = NULL, cpus = NULL")
        cursor.execute(moves["out_of_container"])
        cursor.execute("SELECT memory_bytes, cpus FROM jobs_task ORDER BY name")
        assert cursor.fetchall() == [(1 << 30, 1.5), (None, None)]
        cursor.execute("ALTER TABLE jobs_task DROP memory_bytes, DROP cpus")
    settle(job.id, utcnow())
    assert Job.objects.select_related("spec").get().spec.body["container"] == limits
