"""The panel of a job's page that says when it runs next."""

from __future__ import annotations

from typing import Any

import pytest
from django.contrib.auth.models import User
from django.contrib.staticfiles import finders
from django.test import Client

from executions.store import Store
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from tests.integration.jobs.chain import new_job

pytestmark = pytest.mark.django_db
TYPED = "/admin/jobs/job/preview/"


@pytest.fixture
def root(db: None, store: Store) -> Client:
    browser = Client()
    browser.force_login(User.objects.create_superuser("root"))
    return browser


def page_of(browser: Client, job: Job) -> str:
    answer = browser.get(f"/admin/jobs/job/{job.id}/change/")
    assert answer.status_code == 200
    return str(answer.content.decode())


def test_a_jobs_page_shows_its_next_fires_in_its_zone_and_in_utc(root: Client) -> None:
    page = page_of(root, new_job({"cron": "30 2 * * *", "timezone": "Asia/Tokyo"}, utcnow()))
    assert "At 02:30 (Asia/Tokyo)" in page
    assert page.count(" 02:30:00 +0900") == 20
    assert page.count(" 17:30:00 UTC</time>") >= 20


def test_a_jobs_page_says_what_may_surprise(root: Client) -> None:
    page = page_of(root, new_job("0 0 31 * FRI", utcnow()))
    assert "either day field is enough" in page
    assert "Not every month or year has a day 31" in page


def test_the_form_of_a_new_job_previews_what_is_typed(root: Client) -> None:
    page = root.get("/admin/jobs/job/add/").content.decode()
    assert 'jobs/preview.js" data-address="/admin/jobs/job/preview/" data-job=""' in page
    assert finders.find("jobs/preview.js")


def test_what_is_typed_is_answered_with_fires_or_with_errors(root: Client) -> None:
    def ask(schedule: str, **more: str) -> dict[str, Any]:
        answer = root.post(TYPED, {"schedule": schedule, **more}, content_type="application/json")
        assert answer.status_code == 200
        return dict(answer.json())

    assert len(ask("every 30s")["fires"]) == 10
    assert "3 fields" in ask("0 2 *")["errors"]["schedule"][0]
    assert ask("@daily", job="01980000-0000-7000-8000-000000000000")["errors"]
    assert root.get(TYPED).status_code == 405


def test_what_is_typed_is_answered_to_the_staff_alone_and_from_its_own_pages(root: Client) -> None:
    sent = {"schedule": "@daily"}
    assert Client().post(TYPED, sent, content_type="application/json").status_code == 302
    foreign = Client(enforce_csrf_checks=True)
    foreign.force_login(User.objects.get(username="root"))
    assert foreign.post(TYPED, sent, content_type="application/json").status_code == 403


def test_a_job_that_files_declare_says_so(root: Client) -> None:
    job = new_job("@daily", utcnow())
    assert "comes from files" not in page_of(root, job)
    Job.objects.filter(id=job.id).update(managed_by="apply_jobs")
    assert "comes from files (apply_jobs)" in page_of(root, job)


def test_a_job_whose_zone_is_gone_still_has_a_page(root: Client) -> None:
    job = new_job("0 2 * * *", utcnow())
    Job.objects.filter(id=job.id).update(schedule={"cron": "0 2 * * *", "timezone": "Mars/Olympus"})
    assert "Mars/Olympus" in page_of(root, job)
