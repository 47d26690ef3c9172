"""Changing, pausing, resuming and deleting a job, and moving a run, in the admin."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.admin.models import LogEntry
from django.contrib.auth.models import Group, User
from django.test import Client

from executions.models import Execution
from executions.store import Store
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from tests.integration.jobs.chain import new_job

pytestmark = pytest.mark.django_db(transaction=True)

JOBS, RUNS = "/admin/jobs/job/", "/admin/executions/execution/"


@pytest.fixture
def job(store: Store) -> Job:
    return new_job({"cron": "0 2 * * *"}, utcnow(), parameters={"region": "EU"}, misfire={"maxAge": "1h"})


@pytest.fixture
def root(job: Job) -> Client:
    browser = Client()
    browser.force_login(User.objects.get(username="root"))
    User.objects.update(is_staff=True)
    return browser


def form_of(browser: Client, job: Job) -> dict[str, Any]:
    """What a browser sends back of the form as it is shown."""
    form = browser.get(f"{JOBS}{job.id}/change/").context["adminform"].form
    values = {field.name: field.value() for field in form}
    return {name: "" if value is None else value for name, value in values.items()}


def test_a_form_that_is_sent_back_as_it_is_changes_nothing(root: Client, job: Job) -> None:
    before = Job.objects.values().get(id=job.id)
    assert form_of(root, job)["schedule"] == "0 2 * * *"
    answer = root.post(f"{JOBS}{job.id}/change/", form_of(root, job))
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    assert Job.objects.values().get(id=job.id) == before


def test_a_change_reaches_the_run_that_waits(root: Client, job: Job) -> None:
    changed = {"command": "false", "schedule": '{"every": "2h"}', "overlap": "queue", "misfireMaxCount": "5"}
    answer = root.post(f"{JOBS}{job.id}/change/", {**form_of(root, job), **changed})
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    job.refresh_from_db()
    assert (job.overlap, job.misfire_max_age, job.misfire_max_count) == ("queue", timedelta(hours=1), 5)
    run = Execution.objects.select_related("spec").get(job_id=job.id, state="Waiting")
    assert run.spec.body["command"] == "false"
    assert run.scheduled_for - utcnow() < timedelta(hours=2)
    assert "command" in LogEntry.objects.get().change_message


@pytest.mark.parametrize(
    ("field", "value"), [("schedule", "61 * * * *"), ("command", ""), ("owner", "nobody"), ("jitter", "2d")]
)
def test_a_wrong_change_is_said_at_its_field(root: Client, job: Job, field: str, value: str) -> None:
    answer = root.post(f"{JOBS}{job.id}/change/", {**form_of(root, job), field: value})
    assert list(answer.context["adminform"].form.errors) == [field]
    job.refresh_from_db()
    assert job.revision == 1


def test_a_job_is_paused_resumed_and_deleted_by_buttons(root: Client, job: Job) -> None:
    def page(what: str, **body: str) -> str:
        return str(root.post(f"{JOBS}{job.id}/{what}/", body, follow=True).content.decode())

    def states() -> list[str]:
        return list(Execution.objects.filter(job_id=job.id).values_list("state", flat=True))

    assert "is paused" in page("pause")
    assert states() == ["Paused"]
    assert "goes on" in page("resume", missed="run-latest")
    assert states() == ["Waiting"]
    assert "It is kept for its history" in page("archive")
    assert states() == ["Cancelled"]
    assert root.post(f"{JOBS}{job.id}/pause/").status_code == 404


def test_selected_jobs_are_paused_resumed_and_deleted(root: Client, job: Job) -> None:
    confirmed = {"delete_jobs": {"confirmed": "yes"}}
    for action, state in (("pause", "Paused"), ("resume", "Waiting"), ("delete_jobs", "Cancelled")):
        chosen = {"action": action, "_selected_action": [str(job.id)]}
        root.post(JOBS, {**chosen, **confirmed.get(action, {})})
        assert Execution.objects.get(job_id=job.id).state == state


def test_selected_jobs_are_deleted_only_when_that_is_confirmed(root: Client, job: Job) -> None:
    page = root.post(JOBS, {"action": "delete_jobs", "_selected_action": [str(job.id)]}).content.decode()
    assert "Yes, delete them" in page
    assert f'name="_selected_action" value="{job.id}"' in page
    job.refresh_from_db()
    assert job.archived_at is None


def test_deleted_jobs_are_shown_when_asked_for(root: Client, job: Job) -> None:
    root.post(f"{JOBS}{job.id}/archive/")
    assert list(root.get(JOBS).context["cl"].result_list) == []
    assert list(root.get(f"{JOBS}?deleted=yes").context["cl"].result_list) == [job]


def test_a_job_that_cannot_be_read_says_so_on_its_page(root: Client, job: Job) -> None:
    Job.objects.update(problem="schedule: 'x' is no schedule")
    assert "is no schedule" in root.get(f"{JOBS}{job.id}/change/").content.decode()


def test_staff_change_only_what_is_their_teams(root: Client, job: Job) -> None:
    other = User.objects.create_user("otto", is_staff=True)
    other.groups.add(Group.objects.create(name="others"))
    browser = Client()
    browser.force_login(other)
    assert browser.post(f"{JOBS}{job.id}/pause/").status_code == 404
    assert browser.post(f"{JOBS}{job.id}/change/", {"name": "mine"}).status_code == 302
    job.refresh_from_db()
    assert job.revision == 1


def test_a_run_is_moved_by_a_form(root: Client, job: Job) -> None:
    run = Execution.objects.get(job_id=job.id)
    page = f"{RUNS}{run.id}/reschedule/"
    assert root.get(page).status_code == 405
    assert "is not an instant" in root.post(page, {"at": "soon"}, follow=True).content.decode()
    answer = root.post(page, {"at": "2031-01-01T00:00:00Z"}, follow=True).content.decode()
    assert "The run is due at 2031-01-01T00:00:00Z now." in answer
    root.post(f"{JOBS}{job.id}/pause/")
    answer = root.post(page, {"at": "2031-01-01T00:00:00Z"}, follow=True).content.decode()
    assert "Only a run that waits can be moved: it is Paused." in answer
