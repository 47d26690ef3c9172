"""What tells a stranger where they are: how a job stands, why a list is empty, what an error means."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django_celery_results.models import TaskResult

from executions.models import Execution
from executions.store import Store
from executions.transitions import record
from jobs.admin_cells import condition_cell, latest_run_cell
from jobs.definitions import read_definition
from jobs.listing import latest_runs
from jobs.models import Job, Task
from jobs.schedules import parse_schedule
from jobs.services import create_job
from jobs.stored_schedules import schedule_text
from scheduler_project.kernel.clock import utcnow
from tests.integration.admin.conftest import Browser
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


def test_the_front_page_is_the_dashboard_and_leads_everywhere(root: Client) -> None:
    shown = page(root, "/admin/")
    places = [shown.index(f'href="{address}"') for address in (JOBS, RUNS, "/admin/calendar/")]
    assert places == sorted(places)
    assert 'data-source="/api/v1/overview"' in shown
    assert "View site" not in shown


def test_the_pages_of_figures_are_for_staff(root: Client, client: Client) -> None:
    for address in ("/admin/", "/admin/calendar/"):
        assert page(root, address)
        assert client.get(address)["Location"] == f"/admin/login/?next={address}"


def test_times_on_the_pages_of_django_have_their_zone(root: Client) -> None:
    done = TaskResult.objects.create(task_id="1", status="SUCCESS").date_done
    assert f"{done:%Y-%m-%d %H:%M:%S} UTC" in page(root, "/admin/django_celery_results/taskresult/")


def test_an_error_says_what_to_do(root: Client) -> None:
    assert "/nothing leads nowhere" in page(root, "/nothing", 404)
    stranger = Client(enforce_csrf_checks=True)
    assert "send the form again" in stranger.post("/admin/login/", {"username": "x"}).content.decode()
    clerk = User.objects.create_user("clerk", is_staff=True)
    root.force_login(clerk)
    assert "A superuser can allow it" in page(root, "/admin/jobs/task/add/", 403)


def test_a_fault_of_the_server_is_a_page_without_its_secrets() -> None:
    text = Path("scheduler_project/templates/500.html").read_text(encoding="utf-8")
    assert "{{" not in text  # it is rendered when nothing else may work


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        (
            {"cron": "0 2 * * *", "timezone": "Europe/Berlin"},
            "0 2 * * * Europe/Berlin",
        ),
        ({"cron": "0 2 * * *"}, "0 2 * * *"),
        ({"at": "2026-12-24T18:00:00Z"}, "at 2026-12-24T18:00:00Z"),
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


@pytest.mark.parametrize(
    ("stored", "text"),
    [
        ({"cron": "0 2 * * *", "timezone": "UTC"}, "0 2 * * *"),
        ({"cron": "0 2 * * *", "timezone": "Europe/Berlin"}, "0 2 * * * Europe/Berlin"),
        ({"every": "10s"}, "every 10s"),
        ({"at": "2026-12-24T18:00:00Z"}, "at 2026-12-24T18:00:00Z"),
    ],
)
def test_lists_show_a_schedule_as_it_may_be_typed(stored: Any, text: str) -> None:
    """Those of the admin and those of the commands."""
    assert schedule_text(stored) == text
    assert parse_schedule(text) == parse_schedule(stored)


def test_a_schedule_that_is_none_is_listed_as_it_is() -> None:
    assert schedule_text("nonsense") == "nonsense"
    assert schedule_text({"nonsense": 5}) == '{"nonsense": 5}'


def test_a_task_lists_the_jobs_that_are_made_of_it_and_counts_those_of_others(
    root: Client, browser_of: Browser
) -> None:
    task = Task.objects.create(name="shared", type="Script", command="true")
    address = f"/admin/jobs/task/{task.pk}/change/"
    assert "No job is made of it." in page(root, address)
    team = Group.objects.create(name="team")
    given = {"name": "nightly", "task": task.name, "schedule": "0 2 * * *", "owner": team.name}
    job = create_job(read_definition(given), User.objects.get(username="root"), utcnow()).job
    shown = page(root, address)
    assert f"/admin/jobs/job/{job.id}/change/" in shown and "0 2 * * *" in shown
    theirs = page(browser_of("mia", "marketing"), address)
    assert str(job.id) not in theirs and "1 of other teams" in theirs
