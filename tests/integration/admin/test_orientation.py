"""What tells a stranger where they are: how a job stands, why a list is empty, what an error means."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from rest_framework.authtoken.models import Token

from executions.models import Execution
from executions.store import Store
from executions.transitions import record
from jobs.admin_cells import condition_cell, latest_run_cell, schedule_text
from jobs.listing import latest_runs
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from tests.integration.jobs.chain import new_job, run_to_end
from tests.integration.making import STARTED, said

pytestmark = pytest.mark.django_db(transaction=True)

JOBS, RUNS = "/admin/jobs/job/", "/admin/executions/execution/"


@pytest.fixture
def root(store: Store) -> Client:
    browser = Client(raise_request_exception=False)
    user, _ = User.objects.get_or_create(username="root", is_superuser=True)
    User.objects.update(is_staff=True)
    browser.force_login(user)
    return browser


def page(browser: Client, address: str, status: int = 200) -> str:
    answer = browser.get(address)
    assert answer.status_code == status
    return str(answer.content.decode())


def begin(job: Job) -> Execution:
    run = Execution.objects.get(job_id=job.id, state="Waiting")
    record([said(STARTED, run.id, at=run.scheduled_for)], run.scheduled_for)
    return run


def test_a_job_says_how_it_stands_and_how_it_went(root: Client) -> None:
    now = utcnow()
    job = new_job({"every": "10s"}, now - timedelta(minutes=1))
    assert (condition_cell(job), latest_run_cell(job)) == ("scheduled", "–")
    running = begin(job)
    assert "running" in page(root, f"{JOBS}{job.id}/change/")
    listed = page(root, JOBS)
    assert "the next is planned when it ends" in listed
    assert f"{RUNS}{running.id}/change/" in listed


def test_a_job_that_is_over_says_so(root: Client) -> None:
    now = utcnow()
    job = new_job("now", now)
    run_to_end(job, now, most=1)
    shown = page(root, f"{JOBS}{job.id}/change/")
    assert "nothing more is due" in shown
    assert "Completed Normally" in shown


def test_the_latest_run_is_not_one_that_is_only_planned(root: Client) -> None:
    now = utcnow()
    jobs = [new_job({"every": "10s"}, now - timedelta(minutes=1), name=name) for name in ("one", "two")]
    run_to_end(jobs[0], now, most=2)
    done = Execution.objects.filter(job_id=jobs[0].id, state="Completed Normally").order_by("-id")
    assert {key: run.id for key, run in latest_runs(jobs).items()} == {jobs[0].id: done[0].id}
    assert latest_runs([]) == {}


def test_the_list_of_jobs_asks_as_often_for_many_as_for_one(root: Client) -> None:
    def queries() -> int:
        with CaptureQueriesContext(connection) as done:
            page(root, JOBS)
        return len(done.captured_queries)

    begin(new_job({"every": "10s"}, utcnow(), name="first"))
    once = queries()
    for number in range(5):
        begin(new_job({"every": "10s"}, utcnow(), name=f"job-{number}"))
    assert queries() == once


@pytest.mark.parametrize(
    ("address", "words"),
    [
        (JOBS, "There is no job yet"),
        (f"{JOBS}?q=zzz", "No job here is like that"),
        (RUNS, "There is no run yet"),
        (f"{RUNS}?state=Paused", "No run here is like that"),
    ],
)
def test_an_empty_list_says_why(root: Client, address: str, words: str) -> None:
    assert words in page(root, address)


def test_who_is_in_no_team_is_told_so(root: Client) -> None:
    new_job("now", utcnow())
    root.force_login(User.objects.create_user("clerk", is_staff=True))
    assert "You are in no team" in page(root, JOBS)
    assert "no run of your teams' jobs yet" in page(root, RUNS)


def test_the_front_page_begins_with_jobs_and_runs(root: Client) -> None:
    shown = page(root, "/admin/")
    places = [shown.index(f'class="app-{name} module') for name in ("jobs", "executions", "auth")]
    assert places == sorted(places)
    assert "View site" not in shown


def test_times_on_the_pages_of_django_have_their_zone(root: Client) -> None:
    user = User.objects.get(username="root")
    Token.objects.create(user=user)
    assert f"{user.auth_token.created:%Y-%m-%d %H:%M:%S} UTC" in page(root, "/admin/authtoken/tokenproxy/")


def test_an_error_says_what_to_do(root: Client) -> None:
    assert "/nothing leads nowhere" in page(root, "/nothing", 404)
    stranger = Client(enforce_csrf_checks=True)
    assert "send the form again" in stranger.post("/admin/login/", {"username": "x"}).content.decode()
    clerk = User.objects.create_user("clerk", is_staff=True)
    root.force_login(clerk)
    assert "A superuser can allow it" in page(root, "/admin/jobs/task/", 403)


def test_a_fault_of_the_server_is_a_page_without_its_secrets() -> None:
    text = Path("scheduler_project/templates/500.html").read_text(encoding="utf-8")
    assert "{{" not in text  # it is rendered when nothing else may work


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (
            {"cron": "0 2 * * *", "timezone": "Europe/Berlin"},
            '{"cron": "0 2 * * *", "timezone": "Europe/Berlin"}',
        ),
        ({"cron": "0 2 * * *"}, "0 2 * * *"),
        ({"at": "2026-12-24T18:00:00Z"}, '{"at": "2026-12-24T18:00:00Z"}'),
    ],
)
def test_a_form_shows_a_schedule_as_short_as_it_can_be_written(root: Client, given: Any, shown: str) -> None:
    job = new_job(given, utcnow() - timedelta(days=400))
    assert root.get(f"{JOBS}{job.id}/change/").context["adminform"].form["schedule"].value() == shown


def test_a_text_that_is_no_object_is_not_called_a_body(root: Client) -> None:
    answer = root.post(f"{JOBS}add/", {"schedule": "{bad", "parameters": "[]", "env": "{bad"})
    errors = answer.context["adminform"].form.errors
    assert errors["parameters"] == ["This text is not a JSON object: { … }."]
    assert all("This text is not JSON" in errors[name][0] for name in ("schedule", "env"))
    assert answer.context["adminform"].form["env"].value() == "{bad"


def test_who_can_choose_no_team_is_told_so(root: Client) -> None:
    assert "There is no team yet: add a group first" in page(root, f"{JOBS}add/")


def test_an_instant_is_listed_to_the_second_and_nonsense_as_it_is() -> None:
    assert schedule_text({"at": "2026-12-24T18:00:00.123456Z"}) == "once, 2026-12-24 18:00:00 UTC"
    assert schedule_text({"at": 5}) == "{'at': 5}"
