"""A job's page beside its form: its runs, its next fires, what a run would be, its buttons."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from executions.models import Execution
from executions.states import State
from executions.transitions import record
from jobs.history import history_of
from jobs.models import Job
from jobs.rendering import would_run
from scheduler_project.kernel.clock import utcnow
from tests.integration.admin.conftest import Browser
from tests.integration.jobs.chain import new_job, run_to_end
from tests.integration.making import STARTED, said

pytestmark = pytest.mark.django_db(transaction=True)

JOBS = "/admin/jobs/job/"


@pytest.fixture
def root(browser_of: Browser) -> Client:
    return browser_of("root", is_superuser=True)


def page(browser: Client, job: Job) -> str:
    answer = browser.get(f"{JOBS}{job.id}/change/")
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_its_runs_are_cells_with_their_state_and_length(root: Client) -> None:
    now = utcnow()
    job = new_job({"every": "10s"}, now - timedelta(minutes=1))
    run_to_end(job, now, most=3)
    runs = Execution.objects.filter(job_id=job.id)
    shown = root.get(f"{JOBS}{job.id}/change/").context["cells"]
    assert [cell["address"].split("/")[-3] for cell in shown] == [str(run.id) for run in runs.order_by("id")]
    assert [cell["state"] for cell in shown].count("Completed Normally") == 3
    assert (shown[-1]["state"], shown[-1]["length"]) == ("Waiting", "not begun")


def test_how_long_its_runs_took_is_drawn(root: Client) -> None:
    now = utcnow()
    job = new_job({"every": "10s"}, now - timedelta(minutes=1))
    assert root.get(f"{JOBS}{job.id}/change/").context["trend"] is None
    run_to_end(job, now, most=3)
    points = json.loads(root.get(f"{JOBS}{job.id}/change/").context["trend"])
    assert {point["state"] for point in points} == {"Completed Normally"}
    assert len(points) == 3
    history = history_of(job, now)
    assert history.usual is not None and history.longest is not None
    assert "It usually takes" in page(root, job)


def test_a_run_that_goes_on_is_as_long_as_it_has_run(root: Client) -> None:
    now = utcnow()
    job = new_job("now", now)
    run = Execution.objects.get(job_id=job.id)
    record([said(STARTED, run.id, at=now)], now)
    past = history_of(job, now + timedelta(seconds=90)).runs
    assert [(run.state, run.length) for run in past] == [(State.ACTIVE, timedelta(seconds=90))]


def test_its_next_twenty_fires_are_shown_with_warnings(root: Client) -> None:
    shown = page(root, new_job({"cron": "30 2 31 * *", "timezone": "Europe/Berlin"}, utcnow()))
    assert shown.count("02:30:00 +0") == 20
    assert "Not every month or year has a day 31" in shown


def test_what_a_run_would_be_is_shown_with_secrets_by_name_only(
    root: Client, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.PUNCTUAL_ALLOW_SECRETS = ["*"]
    settings.PUNCTUAL_RUN_ENV = ["HTTPS_PROXY"]
    monkeypatch.setenv("HTTPS_PROXY", "http://of-the-web-process")
    monkeypatch.setenv("PUNCTUAL_SECRET_TEAM_X", "s3cret")
    container = {"secretEnv": {"PGPASSWORD": "team/x"}, "resources": {"memory": {"limit": "2Gi"}}}
    parameters = {"day": "{{ ds }}"}
    job = new_job("0 2 * * *", utcnow(), parameters=parameters, command="echo {{ ds }}", container=container)
    planned = Execution.objects.get(job_id=job.id).scheduled_for
    shown = page(root, job)
    assert f"echo {planned:%Y-%m-%d}" in shown
    assert "PARAM_DAY" in shown and "team/x" in shown and "2Gi" in shown
    assert "as the worker has it" in shown
    assert "of-the-web-process" not in shown and "s3cret" not in shown


def test_what_cannot_be_started_says_why(root: Client, settings: Settings) -> None:
    job = new_job("0 2 * * *", utcnow(), command="echo {{ nobody }}")
    assert "nobody" in would_run(job, utcnow()).problem
    settings.PUNCTUAL_ALLOW_IMAGES = []
    Job.objects.filter(id=job.id).update(command="true", image="other/image")
    assert "It could not start" in page(root, job)


def test_the_page_asks_as_often_for_many_runs_as_for_few(root: Client) -> None:
    def queries(job: Job) -> int:
        with CaptureQueriesContext(connection) as done:
            page(root, job)
        return len(done.captured_queries)

    now = utcnow()
    few, many = (new_job({"every": "10s"}, now - timedelta(minutes=2), name=name) for name in ("few", "many"))
    run_to_end(few, now, most=1)
    run_to_end(many, now, most=5)
    page(root, few)  # what is asked once in the life of a process
    assert queries(few) == queries(many)


def test_the_copy_of_a_job_is_a_form_with_what_it_has(root: Client) -> None:
    job = new_job("0 2 * * *", utcnow(), parameters={"region": "EU"}, retries=3)
    form = root.get(f"{JOBS}add/?from={job.id}").context["adminform"].form
    values: dict[str, Any] = {field.name: field.value() for field in form}
    assert (values["name"], values["schedule"], values["retries"]) == (f"{job.name}-copy", "0 2 * * *", 3)
    sent = {name: "" if value is None else value for name, value in values.items()}
    assert root.post(f"{JOBS}add/?from={job.id}", sent).status_code == 302
    assert Job.objects.get(name=f"{job.name}-copy").parameters == {"region": "EU"}


@pytest.mark.parametrize("given", ["x", "0193e4a0-0000-7000-8000-000000000000"])
def test_a_copy_of_nothing_is_an_empty_form(root: Client, given: str) -> None:
    assert root.get(f"{JOBS}add/?from={given}").context["adminform"].form["name"].value() is None


def test_buttons_are_there_for_those_who_may_press_them(root: Client, browser_of: Browser) -> None:
    job = new_job("0 2 * * *", utcnow())
    team = job.owner.name
    words = ("Run now", "Run with parameters", ">Pause<", "Backfill", "Yes, delete it")
    assert [word in page(root, job) for word in words] == [True] * 5
    assert [word in page(browser_of("olga", team, "operators"), job) for word in words] == [True] * 4 + [
        False
    ]
    assert [word in page(browser_of("vera", team, "viewers"), job) for word in words] == [False] * 5
    root.post(f"{JOBS}{job.id}/pause/")
    assert 'value="run-latest"' in page(root, job)


def test_no_script_of_the_page_is_inline(root: Client) -> None:
    shown = page(root, new_job("0 2 * * *", utcnow()))
    assert shown.count("<script") == shown.count("<script src=") + shown.count('<script id="django-admin')
    assert " onclick=" not in shown


def test_who_changed_what_is_on_the_page(root: Client) -> None:
    job = new_job("0 2 * * *", utcnow(), retries=1)
    sent = {
        field.name: field.value() for field in root.get(f"{JOBS}{job.id}/change/").context["adminform"].form
    }
    sent = {name: "" if value is None else value for name, value in sent.items()}
    assert root.post(f"{JOBS}{job.id}/change/", {**sent, "retries": "4"}).status_code == 302
    root.post(f"{JOBS}{job.id}/pause/")
    shown = root.get(f"{JOBS}{job.id}/change/").context["changes"]
    assert [(change["who"], change["action"]) for change in shown] == [
        ("root", "paused"),
        ("root", "changed"),
        ("root", "created"),
    ]
    assert ("retries", "1", "4") in shown[1]["fields"]
    assert f"/admin/trail/changerecord/?job={job.id}" in page(root, job)


def test_values_of_changes_are_written_as_in_a_definition(root: Client) -> None:
    job = new_job("0 2 * * *", utcnow())
    (made,) = root.get(f"{JOBS}{job.id}/change/").context["changes"]
    assert ("misfire", "–", '{"policy": "latest"}') in made["fields"]
    assert "{&quot;policy&quot;: &quot;latest&quot;}" in page(root, job)
    assert (
        "{&quot;policy&quot;: &quot;latest&quot;}" in root.get("/admin/trail/changerecord/").content.decode()
    )


def test_changes_of_other_teams_are_on_nobodys_page(root: Client, browser_of: Browser) -> None:
    job = new_job("0 2 * * *", utcnow())
    assert browser_of("otto", "others").get(f"{JOBS}{job.id}/change/").status_code in {302, 404}
    assert root.get(f"/admin/trail/changerecord/?job={job.id}").status_code == 200
