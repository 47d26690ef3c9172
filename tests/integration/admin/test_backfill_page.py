"""The page that makes the runs of a span of the past, after it has said which."""

from __future__ import annotations

from datetime import timedelta

import pytest
from django.test import Client

from executions.models import Execution
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from tests.integration.admin.conftest import Browser
from tests.integration.jobs.chain import new_job

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def job(browser_of: Browser) -> Job:
    return new_job("0 2 * * *", utcnow())


@pytest.fixture
def root(job: Job, browser_of: Browser) -> Client:
    return browser_of("root", is_superuser=True)


def address(job: Job) -> str:
    return f"/admin/jobs/job/{job.id}/backfill/"


def span(days: int, **fields: str) -> dict[str, str]:
    end = utcnow().replace(hour=0, minute=0, second=0, microsecond=0)
    since = end - timedelta(days=days)
    return {"since": since.isoformat(), "until": end.isoformat(), "maxActive": "2", **fields}


def made(job: Job) -> int:
    return Execution.objects.filter(job_id=job.id, trigger="backfill").count()


def test_yesterday_is_proposed(root: Client, job: Job) -> None:
    form = root.get(address(job)).context["form"]
    assert form["since"].value().endswith("T00:00:00Z")
    assert form["since"].value() < form["until"].value()


def test_what_would_run_is_shown_first_and_nothing_is_made(root: Client, job: Job) -> None:
    answer = root.post(address(job), span(3, plan="yes"))
    assert (answer.context["planned"], answer.context["new"]) == (3, 3)
    assert "Run these 3" in answer.content.decode()
    assert made(job) == 0


def test_it_makes_the_runs_and_no_second_of_one(root: Client, job: Job) -> None:
    shown = root.post(address(job), span(2, make="yes"), follow=True).content.decode()
    assert "2 runs were made. " in shown and "already" not in shown
    again = root.post(address(job), span(3, plan="yes"))
    assert (again.context["planned"], again.context["new"]) == (3, 1)
    assert "is there already" in again.content.decode()
    assert made(job) == 2
    run = Execution.objects.filter(job_id=job.id, trigger="backfill").first()
    assert run is not None and run.most_active == 2


@pytest.mark.parametrize(
    ("fields", "field", "words"),
    [
        ({"since": "yesterday"}, "since", "yesterday"),
        ({"until": "2001-01-01T00:00:00Z"}, "until", "is not later than"),
        ({"since": "2001-01-01T00:00:00Z"}, "since", "too long ago"),
        ({"maxActive": "0"}, "maxActive", "1"),
    ],
)
def test_what_is_wrong_is_said_at_its_field(
    root: Client, job: Job, fields: dict[str, str], field: str, words: str
) -> None:
    answer = root.post(address(job), span(2, make="yes", **fields))
    assert field in answer.context["form"].errors
    assert words in str(answer.context["form"].errors[field])
    assert made(job) == 0


def test_others_do_not_get_there(job: Job, browser_of: Browser) -> None:
    assert browser_of("otto", "others").post(address(job), span(2, make="yes")).status_code == 404
    assert browser_of("vera", job.owner.name, "viewers").get(address(job)).status_code == 403
    assert made(job) == 0
