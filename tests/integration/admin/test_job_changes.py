"""Changing, pausing, resuming and deleting a job, and moving a run, in the admin."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.test import Client

from access.audit import changes_of
from executions import scheduling
from executions.models import Execution
from executions.pools import Pools
from executions.store import Store, default_store
from jobs.models import Job, Pool
from jobs.pools import key_of
from scheduler_project.kernel.clock import utcnow
from tests.integration.jobs.chain import new_job

pytestmark = pytest.mark.django_db(transaction=True)

POOLS = "/admin/jobs/pool/"
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
    assert "command" in changes_of(job, 1)[0].fields


def test_where_a_job_runs_and_how_many_at_once(root: Client, job: Job) -> None:
    made = root.post(POOLS + "add/", {"name": "warehouse", "slots": "2", "team": "", "description": ""})
    assert made.status_code == 302, made.context["adminform"].form.errors
    changed = {"queue": "etl", "priority": "high", "pool": "warehouse", "maxActive": "3"}
    answer = root.post(f"{JOBS}{job.id}/change/", {**form_of(root, job), **changed})
    assert answer.status_code == 302, answer.context["adminform"].form.errors
    job.refresh_from_db()
    assert (job.queue, job.priority, str(job.pool), job.max_active) == ("etl", "high", "warehouse", 3)
    assert {name: form_of(root, job)[name] for name in changed} == {**changed, "maxActive": 3}
    run = Execution.objects.select_related("spec").get(job_id=job.id, state="Waiting")
    assert (run.spec.body["pool"], run.spec.body["queue"]) == ("warehouse", "etl")


def test_a_pool_in_the_admin_keeps_its_name_and_its_jobs(root: Client, job: Job) -> None:
    root.post(POOLS + "add/", {"name": "warehouse", "slots": "2", "team": "", "description": ""})
    pool = Pool.objects.get()
    root.post(f"{POOLS}{pool.id}/change/", {"name": "other", "slots": "0", "description": "closed"})
    pool.refresh_from_db()
    assert (pool.name, pool.slots, pool.description) == ("warehouse", 0, "closed")
    assert Pools(default_store(), timedelta(0)).usage([key_of(pool)])[0].active == 0
    assert "0 of 0, 0 waiting" in root.get(POOLS).content.decode()
    Job.objects.update(pool=pool)
    assert root.post(f"{POOLS}{pool.id}/delete/", {"post": "yes"}).status_code == 403
    Job.objects.update(pool=None)
    root.post(f"{POOLS}{pool.id}/delete/", {"post": "yes"})
    assert not Pool.objects.exists()
    assert "is not a pool" in root.post(POOLS + "add/", {"name": "a b", "slots": "2"}).content.decode()


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("queue", "A b"),
        ("pool", "nobody"),
        ("maxActive", "0"),
        ("schedule", "61 * * * *"),
        ("command", ""),
        ("owner", "nobody"),
        ("jitter", "2d"),
    ],
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
    assert "goes on; of what was due meanwhile the latest run is made" in page("resume", missed="run-latest")
    assert changes_of(job, 1)[0].fields == {"missed": (None, "run-latest")}
    assert states() == ["Waiting"]
    assert "It is kept for its history" in page("archive")
    assert states() == ["Cancelled"]
    assert root.post(f"{JOBS}{job.id}/pause/").status_code == 404


def test_run_now_says_that_a_run_was_made_and_while_redis_is_away_when_it_starts(
    root: Client, job: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    def said() -> str:
        return str(root.post(f"{JOBS}{job.id}/run/", follow=True).content.decode())

    link = '<a href="/admin/executions/execution/'
    assert f"A run of {job.name} was made, due now: {link}" in said()
    gone = Store("redis://127.0.0.1:1/0", "nobody", timeout_s=1)
    monkeypatch.setattr(scheduling, "default_store", lambda: gone)
    assert f"was made, due now; it starts when Redis answers again: {link}" in said()


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
    assert browser.post(f"{JOBS}{job.id}/change/", {"name": "mine"}).status_code == 404
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
