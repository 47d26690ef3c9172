"""Reusable tasks over REST, and jobs that name them, by each way in."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command
from rest_framework.test import APIClient

from executions.models import Execution
from jobs.models import Job, Task
from tests.integration.api.conftest import problem_of

TASK: dict[str, Any] = {
    "name": "load-table",
    "type": "Script",
    "command": "echo {{ params.table }} {{ params.mode }}",
    "parameters": {"mode": "append"},
    "env": {"PGHOST": "db"},
}


@pytest.fixture
def keeper(member: APIClient) -> APIClient:
    """The member, with Django's permissions on tasks."""
    permissions = Permission.objects.filter(content_type__app_label="jobs", codename__endswith="_task")
    User.objects.get(username="mia").user_permissions.add(*permissions)
    return member


def make(client: APIClient, **fields: Any) -> dict[str, Any]:
    answer = client.post("/api/v1/tasks", {**TASK, **fields}, format="json")
    assert answer.status_code == 201, answer.content
    assert answer["Location"] == f"/api/v1/tasks/{answer.json()['id']}"
    return dict(answer.json())


def job_of(client: APIClient, **fields: Any) -> Any:
    body = {"name": "load-sales", "owner": "data-engineering", "schedule": "0 2 * * *", "task": "load-table"}
    return client.post("/api/v1/jobs", {**body, **fields}, format="json")


def waiting(job_id: str) -> Execution:
    return Execution.objects.select_related("spec").get(job_id=job_id, state="Waiting")


@pytest.mark.django_db
def test_tasks_are_made_read_listed_changed_and_deleted(keeper: APIClient, outsider: APIClient) -> None:
    made = [make(keeper, name=f"task-{number}") for number in range(3)]
    seen, address = [], "/api/v1/tasks?limit=2"
    while address:
        page = outsider.get(address).json()
        seen += page["results"]
        address = page["next"]
    assert sorted(seen, key=lambda task: str(task["name"])) == made
    assert outsider.get("/api/v1/tasks?name=task-1").json()["results"] == [made[1]]
    one = f"/api/v1/tasks/{made[0]['id']}"
    assert outsider.get(one).json() == made[0]
    changed = keeper.patch(one, {"description": "of all teams"}, format="json").json()
    assert changed == {**made[0], "description": "of all teams"}
    assert keeper.delete(one).status_code == 204
    problem_of(keeper.get(one), 404)
    problem_of(keeper.get("/api/v1/tasks/none"), 404)


@pytest.mark.django_db
def test_a_task_that_cannot_be_is_refused(keeper: APIClient, outsider: APIClient) -> None:
    made = make(keeper)
    one = f"/api/v1/tasks/{made['id']}"
    problem_of(keeper.post("/api/v1/tasks", TASK, format="json"), 409)
    problem_of(outsider.post("/api/v1/tasks", {**TASK, "name": "other"}, format="json"), 403)
    problem_of(outsider.patch(one, {"command": "echo"}, format="json"), 403)
    problem_of(outsider.delete(one), 403)
    wrong = {"type": "Perl", "parameters": {"a b": 1}, "container": {"user": []}, "color": "red"}
    errors = problem_of(keeper.post("/api/v1/tasks", {"name": "other", **wrong}, format="json"), 400)[
        "errors"
    ]
    assert set(errors) == {"type", "parameters", "container.user", "color"}
    assert set(problem_of(keeper.post("/api/v1/tasks", {}, format="json"), 400)["errors"]) == {"name", "type"}
    assert "image" in problem_of(keeper.patch(one, {"type": "Container"}, format="json"), 400)["errors"]


@pytest.mark.django_db
def test_a_job_takes_over_what_it_does_not_say(keeper: APIClient) -> None:
    make(keeper)
    made = job_of(keeper, parameters={"table": "sales"}).json()
    spec = waiting(made["jobId"]).spec.body
    assert (spec["type"], spec["command"]) == ("Script", TASK["command"])
    assert (spec["parameters"], spec["env"]) == ({"mode": "append", "table": "sales"}, {"PGHOST": "db"})
    own = job_of(keeper, name="own", command="echo mine", parameters={"mode": "replace"}).json()
    spec = waiting(own["jobId"]).spec.body
    assert (spec["command"], spec["parameters"]) == ("echo mine", {"mode": "replace"})
    shown = keeper.get(f"/api/v1/jobs/{made['jobId']}").json()
    assert (shown["task"], shown["type"], shown["command"]) == ("load-table", "Script", "")


@pytest.mark.django_db
def test_a_job_and_a_task_that_do_not_go_together_are_refused(keeper: APIClient) -> None:
    make(keeper)
    make(keeper, name="empty", type="Container", image="busybox:stable", command="")
    assert "load-table" in problem_of(job_of(keeper, task="load-tabel"), 400)["errors"]["task"][0]
    assert "Script" in problem_of(job_of(keeper, type="SQL"), 400)["errors"]["type"][0]
    both = {"container": {"secretEnv": {"PGHOST": "data-engineering/x"}}}
    assert "container.secretEnv.PGHOST" in problem_of(job_of(keeper, **both), 400)["errors"]
    missing = problem_of(job_of(keeper, task=None), 400)["errors"]
    assert set(missing) == {"type", "command"}
    assert job_of(keeper, task="empty").status_code == 201


@pytest.mark.django_db
def test_a_job_changes_its_task_and_keeps_it_otherwise(keeper: APIClient) -> None:
    make(keeper)
    make(keeper, name="check", type="Python", command="python -c pass", parameters={})
    job = f"/api/v1/jobs/{job_of(keeper, parameters={'table': 'x'}).json()['jobId']}"
    kept = keeper.patch(job, {"retries": 2}, format="json").json()
    assert (kept["task"], kept["retries"]) == ("load-table", 2)
    other = keeper.patch(job, {"task": "check"}, format="json").json()
    assert (other["task"], other["type"]) == ("check", "Python")
    alone = keeper.patch(job, {"task": None, "command": "python -c 1"}, format="json").json()
    assert (alone["task"], alone["type"]) == (None, "Python")


@pytest.mark.django_db(transaction=True)
def test_an_edit_of_a_task_reaches_the_waiting_runs_of_its_jobs_at_once(keeper: APIClient) -> None:
    task = make(keeper)
    jobs = [job_of(keeper, name=f"job-{n}", parameters={"table": "x"}).json()["jobId"] for n in range(2)]
    before = [waiting(job).spec_id for job in jobs]
    changes = {"command": "echo anew", "parameters": {"mode": "replace"}}
    assert keeper.patch(f"/api/v1/tasks/{task['id']}", changes, format="json").status_code == 200
    for job, old in zip(jobs, before, strict=True):
        run = waiting(job)
        assert run.spec_id != old
        assert run.spec.body["command"] == "echo anew"
        assert run.spec.body["parameters"] == {"mode": "replace", "table": "x"}
    assert not Job.objects.exclude(problem="").exists()


@pytest.mark.django_db(transaction=True)
def test_a_task_that_jobs_use_stays(keeper: APIClient) -> None:
    task = make(keeper)
    job = job_of(keeper, parameters={"table": "x"}).json()["jobId"]
    one = f"/api/v1/tasks/{task['id']}"
    assert "1 jobs use" in problem_of(keeper.delete(one), 409)["detail"]
    assert keeper.delete(f"/api/v1/jobs/{job}").status_code == 204
    assert keeper.delete(one).status_code == 204
    assert not Task.objects.exists()


@pytest.mark.django_db
def test_files_name_tasks_and_applying_them_again_changes_nothing(
    keeper: APIClient, tmp_path: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    make(keeper)
    file = tmp_path / "jobs.yaml"
    file.write_text(
        "- name: load-sales\n  owner: data-engineering\n  task: load-table\n"
        "  parameters: {table: sales}\n  schedule: 0 2 * * *\n"
    )
    call_command("apply_jobs", str(file))
    assert Job.objects.get().task == Task.objects.get()
    capsys.readouterr()
    call_command("apply_jobs", str(file), "--dry-run")
    said = capsys.readouterr().out
    assert "update" not in said.lower().replace("0 updated", "").replace("0 to update", ""), said
    assert Job.objects.get().type == "Script"
