"""The page that runs a job with other parameters."""

from __future__ import annotations

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
    parameters = {"region": "EU", "full": True}
    return new_job("0 2 * * *", utcnow(), parameters=parameters, command="echo {{ params.region }}")


@pytest.fixture
def root(job: Job, browser_of: Browser) -> Client:
    return browser_of("root", is_superuser=True)


def address(job: Job) -> str:
    return f"/admin/jobs/job/{job.id}/run-with/"


def asked_runs(job: Job) -> list[Execution]:
    return list(Execution.objects.select_related("spec").filter(job_id=job.id, trigger="manual"))


def test_it_begins_with_the_parameters_of_the_job(root: Client, job: Job) -> None:
    shown = root.get(address(job)).content.decode()
    assert "&quot;region&quot;: &quot;EU&quot;" in shown


def test_only_what_is_changed_is_the_runs_own(root: Client, job: Job) -> None:
    answer = root.post(address(job), {"parameters": '{"region": "US", "full": true}'})
    (run,) = asked_runs(job)
    assert answer["Location"] == f"/admin/executions/execution/{run.id}/change/"
    assert run.spec.body["parameters"] == {"region": "US", "full": True}
    assert run.spec.body["overrides"] == {"region": "US"}


def test_true_is_not_one(root: Client, job: Job) -> None:
    root.post(address(job), {"parameters": '{"region": "EU", "full": 1}'})
    assert asked_runs(job)[0].spec.body["overrides"] == {"full": 1}


def test_what_it_would_be_is_shown_and_nothing_runs(root: Client, job: Job) -> None:
    shown = root.post(address(job), {"parameters": '{"region": "Mars"}', "show": "yes"}).content.decode()
    assert "echo Mars" in shown
    assert asked_runs(job) == []


@pytest.mark.parametrize(
    ("given", "words"), [("[]", "not a JSON object"), ('{"a": 1, "A": 2}', "PARAM_A"), ("{", "not JSON")]
)
def test_what_is_wrong_is_said_and_nothing_runs(root: Client, job: Job, given: str, words: str) -> None:
    shown = root.post(address(job), {"parameters": given}).content.decode()
    assert words in shown
    assert asked_runs(job) == []


def test_others_do_not_get_there(job: Job, browser_of: Browser) -> None:
    assert browser_of("otto", "others").get(address(job)).status_code == 404
    assert browser_of("vera", job.owner.name, "viewers").post(address(job), {}).status_code == 403
    assert browser_of("olga", job.owner.name, "operators").get(address(job)).status_code == 200
    assert browser_of("olga").get("/admin/jobs/job/x/run-with/").status_code == 404
