"""The admin's pages, over HTTP as a browser asks for them."""

from __future__ import annotations

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, Permission, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from pytest_django import Settings

from access.audit import changes_of
from executions.admin_cells import state_cell
from executions.events import REPORTED, Event
from executions.history import append_history
from executions.log_places import log_store
from executions.models import Execution, ExecutionEvent
from executions.states import EventType, State
from executions.store import Store
from executions.transitions import record
from jobs.definitions import read_definition
from jobs.models import Job, Task
from jobs.runs import run_job
from jobs.services import create_job
from scheduler_project.kernel.clock import utcnow

pytestmark = pytest.mark.django_db

JOBS = "/admin/jobs/job/"
RUNS = "/admin/executions/execution/"
FORM = {
    "name": "nightly",
    "owner": "data-engineering",
    "description": "",
    "type": "Script",
    "command": "echo {{ ds }}",
    "image": "",
    "schedule": "0 2 * * *",
    "parameters": '{"region": "EU"}',
    "env": "",
    "retries": "2",
    "retryDelay": "30s",
    "timeout": "1h",
}
StaffOf = Callable[..., Client]


@pytest.fixture
def staff_of(db: None, store: Store) -> StaffOf:
    """A browser in which a user of the staff, in these teams, has logged in."""

    def make(name: str, *teams: str, **fields: Any) -> Client:
        user = User.objects.create_user(name, is_staff=True, **fields)
        user.groups.set([Group.objects.get_or_create(name=team)[0] for team in teams])
        browser = Client()
        browser.force_login(user)
        return browser

    return make


@pytest.fixture
def root(staff_of: StaffOf) -> Client:
    Group.objects.create(name="data-engineering")
    return staff_of("root", is_superuser=True)


def make_job(**fields: Any) -> Job:
    body = {"name": "nightly", "type": "Script", "command": "true", "schedule": "0 2 * * *", **fields}
    user = User.objects.get(username="root")
    return create_job(read_definition({"owner": "data-engineering", **body}), user, utcnow()).job


def text(answer: Any) -> str:
    assert answer.status_code == 200, answer
    return str(answer.content.decode())


def happen(run: UUID, kind: EventType, attempt: int = 1, **fields: Any) -> None:
    at = utcnow()
    record([Event(type=kind, execution_id=run, attempt=attempt, at=at, **fields)], at, keep=True)


def test_a_job_added_here_is_whole(root: Client) -> None:
    answer = root.post(f"{JOBS}add/", FORM)

    assert answer.status_code == 302, answer.content.decode()
    job = Job.objects.get()
    assert (job.owner.name, job.retries, job.retry_delay) == ("data-engineering", 2, timedelta(seconds=30))
    assert (job.parameters, job.timeout, job.created_by) == ({"region": "EU"}, timedelta(hours=1), "root")
    first = Execution.objects.get()
    assert (first.job_id, first.spec_id, first.state) == (job.id, job.spec_id, State.WAITING)
    assert changes_of(job, 1)[0].action == "created"


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "", "required"),
        ("owner", "nobody", "valid choice"),
        ("schedule", "0 0 31 2 *", "never fires"),
        ("schedule", '{"every": "10s"', "not JSON"),
        ("schedule", '{"cron": "0 2 * * *", "end": "2001-01-01T00:00:00Z"}', "does not fire"),
        ("schedule", '{"cron": "0 2 * * *", "timezone": "Mars/Olympus"}', "Mars/Olympus"),
        ("command", " ", "blank"),
        ("command", "{{", "template"),
        ("parameters", "[1]", "not a JSON object"),
        ("parameters", '{"a": "\\ud800"}', "surrogate"),
        ("parameters", '{"a":' * 5000, "nested"),
        ("parameters", '{"a": 1, "A": 2}', "PARAM_A"),
        ("env", '{"a b": "c"}', "variable"),
        ("retries", "1000", "0 to 100"),
        ("retryDelay", "soon", "length of time"),
        ("timeout", "0", "0"),
        ("image", "x" * 501, "at most 500"),
        ("container", '{"resources": {"memory": {"limit": "1"}}}', "container.resources.memory.limit: "),
        ("container", '{"network": "host"}', "PUNCTUAL_ALLOW_NETWORKS"),
        ("container", "{", "not JSON"),
    ],
)
def test_a_wrong_field_is_said_at_the_field_and_nothing_is_made(
    root: Client, field: str, value: str, said: str
) -> None:
    answer = root.post(f"{JOBS}add/", {**FORM, field: value})
    form = answer.context["adminform"].form
    assert list(form.errors) == [field]
    assert said in str(form.errors[field])
    assert "errornote" in text(answer)
    assert not Job.objects.exists()
    assert not Execution.objects.exists()


def test_all_that_is_wrong_is_said_at_once(root: Client) -> None:
    wrong = {"name": "", "owner": "nobody", "schedule": "x", "retries": "-1", "env": "{"}
    answer = root.post(f"{JOBS}add/", {**FORM, **wrong})
    assert set(answer.context["adminform"].form.errors) == set(wrong)


def test_a_second_job_of_a_name_is_said_at_the_name(root: Client) -> None:
    make_job()
    assert "already has a job named" in text(root.post(f"{JOBS}add/", FORM))
    assert Job.objects.count() == 1


def test_a_type_without_its_image_is_said_at_the_image(root: Client) -> None:
    answer = root.post(f"{JOBS}add/", {**FORM, "type": "Container"})
    assert list(answer.context["adminform"].form.errors) == ["image"]


def test_a_job_that_is_there_is_shown_and_run(root: Client) -> None:
    job = make_job(parameters={"text": "<script>"})
    page = text(root.get(f"{JOBS}{job.id}/change/"))
    assert "0 2 * * *" in page
    assert "&lt;script&gt;" in page
    assert root.post(f"{JOBS}{job.id}/delete/", {"post": "yes"}).status_code == 403

    assert root.get(f"{JOBS}{job.id}/run/").status_code == 405
    answer = root.post(f"{JOBS}{job.id}/run/", follow=True)

    run = Execution.objects.get(trigger="manual")
    assert f"{RUNS}{run.id}/change/" in text(answer)


def test_selected_jobs_are_run_from_the_list(root: Client) -> None:
    jobs = [make_job(name=name) for name in ("one", "two", "three")]
    chosen = [str(job.id) for job in jobs[:2]]
    root.post(JOBS, {"action": "run_now", "_selected_action": chosen})
    assert {str(run.job_id) for run in Execution.objects.filter(trigger="manual")} == set(chosen)


def test_the_list_of_jobs_shows_schedule_and_next_run_without_a_query_for_each(root: Client) -> None:
    for number in range(12):
        make_job(name=f"job-{number}")
    with CaptureQueriesContext(connection) as done:
        page = text(root.get(JOBS))
    assert page.count("02:00:00 UTC</time>") == 12
    assert len(done.captured_queries) < 15


def test_the_list_of_runs_is_paged_by_key_and_never_counts(root: Client, settings: Settings) -> None:
    job = make_job()
    user = User.objects.get(username="root")
    now = utcnow()
    for number in range(70):
        run_job(job, user, now + timedelta(seconds=number))
    with CaptureQueriesContext(connection) as done:
        first = root.get(RUNS)
    assert not any("count(" in query["sql"].lower() for query in done.captured_queries)
    assert len(first.context["cl"].result_list) == 50
    second = root.get(RUNS + first.context["cl"].older)
    shown = [run.id for page in (first, second) for run in page.context["cl"].result_list]
    assert len(set(shown)) == len(shown) == 71
    assert shown == sorted(shown, reverse=True)
    assert second.context["cl"].older == ""
    assert "before" not in second.context["cl"].newest


def test_the_list_of_runs_is_filtered(root: Client) -> None:
    one, two = make_job(name="one"), make_job(name="two", owner="marketing")
    due = datetime(2020, 1, 1, tzinfo=UTC)
    run_job(one, User.objects.get(username="root"), due)
    marketing = Group.objects.get(name="marketing").id

    def found(query: str) -> int:
        answer = root.get(f"{RUNS}?{query}")
        assert answer.status_code == 200, (query, answer)
        return len(answer.context["cl"].result_list)

    assert (found(""), found("state=Waiting"), found("state=Active"), found("state=Nonsense")) == (3, 3, 0, 0)
    assert (found("due=ahead"), found("due=week"), found("due=x")) == (2, 0, 3)
    Execution.objects.filter(id=Execution.objects.earliest("id").id).update(reason="pool_full", attempt=5)
    assert (found("reason=pool_full"), found("reason=lost"), found("reason=x")) == (1, 0, 0)
    assert (found("attempt=1"), found("attempt=later"), found("attempt=x")) == (2, 1, 0)
    assert (found("trigger=manual&attempt=later"), found("trigger=backfill"), found("trigger=x")) == (1, 0, 0)
    assert found("trigger=schedule&attempt=later") == 0
    assert (found(f"job={one.id}"), found(f"job={two.id}"), found("job=x")) == (2, 1, 0)
    assert (found(f"team={marketing}"), found("team=0"), found("team=x")) == (1, 0, 0)
    for nonsense in ("before=x", "colour=red"):
        assert root.get(f"{RUNS}?{nonsense}").status_code == 302


def test_a_run_is_shown_with_its_states_events_and_output(
    root: Client, settings: Settings, tmp_path: Path
) -> None:
    settings.PUNCTUAL_LOG_DIR = tmp_path
    job = make_job(schedule="now", retries=1, retryDelay="0s")
    run = Execution.objects.get()
    assert "This run has not started." in text(root.get(f"{RUNS}{run.id}/change/"))
    happen(run.id, EventType.STARTED, worker="w1")
    assert "written nothing so far" in text(root.get(f"{RUNS}{run.id}/change/"))
    log_store().writer(run.id, 1).write(b"first line\n\x1b[31mred\x1b[0m <b>\xff\n")
    happen(run.id, EventType.FAILED, worker="w1", exit_code=3, reason="failed", message="exit code 3")

    page = text(root.get(f"{RUNS}{run.id}/change/"))

    for part in ("JOB_STARTED", "JOB_FAILED", "JOB_RETRYING", "exit code 3", f"{JOBS}{job.id}/change/", "w1"):
        assert part in page
    assert "first line\nred &lt;b&gt;\N{REPLACEMENT CHARACTER}" in page
    assert page.count("<rect") == 3


def test_a_long_output_is_shown_by_its_end(root: Client, settings: Settings, tmp_path: Path) -> None:
    settings.PUNCTUAL_LOG_DIR = tmp_path
    make_job(schedule="now")
    run = Execution.objects.get()
    happen(run.id, EventType.STARTED, worker="w1")
    log_store().writer(run.id, 1).write(b"".join(b"line %d\n" % number for number in range(100_000)))
    page = text(root.get(f"{RUNS}{run.id}/change/"))
    assert "line 99999" in page
    assert "line 99700\n" not in page
    assert f"/api/v1/executions/{run.id}/logs?attempt=1" in page
    assert "These are the last lines." in page


def test_a_run_is_cancelled_by_a_button_and_only_once(root: Client) -> None:
    make_job()
    run = Execution.objects.get()
    page = f"{RUNS}{run.id}/"
    assert "Yes, cancel it</button>" in text(root.get(f"{page}change/"))
    assert root.get(f"{page}cancel/").status_code == 405
    assert "The run is cancelled." in text(root.post(f"{page}cancel/", follow=True))
    run.refresh_from_db()
    assert (run.state, run.message) == (State.CANCELLED, "cancelled by root")
    assert "has ended already" in text(root.post(f"{page}cancel/", follow=True))
    assert "Yes, cancel it</button>" not in text(root.get(f"{page}change/"))


def test_an_ended_run_is_retried_by_a_button_that_leads_to_the_new_one(
    root: Client, staff_of: StaffOf
) -> None:
    make_job()
    run = Execution.objects.get()
    page = f"{RUNS}{run.id}/"
    hidden = '<li data-while="ended" hidden>'
    assert hidden in text(root.get(f"{page}change/"))
    assert root.get(f"{page}retry/").status_code == 405
    assert "has not ended" in text(root.post(f"{page}retry/", follow=True))
    assert Execution.objects.count() == 1
    root.post(f"{page}cancel/")
    vera = staff_of("vera", "data-engineering", "viewers")
    shown = text(vera.get(f"{page}change/"))
    assert "/retry/" not in shown and "/cancel/" not in shown
    assert vera.post(f"{page}retry/").status_code == 403
    assert hidden not in text(root.get(f"{page}change/"))
    answer = root.post(f"{page}retry/", follow=True)
    new = Execution.objects.get(state=State.WAITING, scheduled_for=run.scheduled_for)
    assert answer.redirect_chain == [(f"{RUNS}{new.id}/change/", 302)]
    assert "once more" in text(answer)


def test_a_retry_and_what_it_repeats_lead_to_each_other_and_it_is_not_late_by_the_plan(root: Client) -> None:
    due = datetime(2026, 11, 1, tzinfo=UTC)
    first = run_job(make_job(), User.objects.get(username="root"), due).execution_id
    happen(first, EventType.STARTED, worker="w1")
    happen(first, EventType.FAILED, worker="w1", reason="failed", exit_code=1)
    root.post(f"{RUNS}{first}/retry/")
    again = Execution.objects.get(retry_of=first)
    happen(again.id, EventType.STARTED, worker="w1")
    for page, name, other in ((first, "Retried by", again.id), (again.id, "Retry of", first)):
        facts = dict(root.get(f"{RUNS}{page}/change/").context["facts"])
        assert facts[name] == f'<a href="{RUNS}{other}/change/">{other}</a>'
    assert facts["Planned for"] != "–" and facts["Started after it was due"].endswith("s")
    assert "d" not in facts["Started after it was due"]


def test_a_run_is_late_by_its_first_attempt_and_started_belongs_to_its_latest(root: Client) -> None:
    make_job(schedule="now", retries=1)
    run = Execution.objects.get()
    due = run.scheduled_for
    for attempt, kind, seconds in (
        (1, EventType.STARTED, 2),
        (1, EventType.FAILED, 5),
        (2, EventType.STARTED, 60),
    ):
        at = due + timedelta(seconds=seconds)
        event = Event(type=kind, execution_id=run.id, attempt=attempt, at=at, retryable=True, started_at=None)
        record([event], at, keep=True)
    facts = dict(root.get(f"{RUNS}{run.id}/change/").context["facts"])
    assert facts["Started after it was due"] == "2.000 s"
    assert "Started (attempt 2)" in facts and "Duration (attempt 2)" in facts and "Started" not in facts


def test_a_next_run_that_is_overdue_leads_to_why(root: Client) -> None:
    job = make_job()
    past = utcnow() - timedelta(minutes=2)
    Execution.objects.update(scheduled_for=past, check_at=past)
    said = re.compile(r"due 2m(\d+s)? ago, not started:")
    page = text(root.get(f"{JOBS}{job.id}/change/"))
    assert said.search(page) and f'<a href="{RUNS}{Execution.objects.get().id}/change/">why?</a>' in page
    assert said.search(text(root.get(JOBS)))


def test_what_began_or_ended_unrecorded_offers_no_move(root: Client) -> None:
    make_job()
    run = Execution.objects.get()
    hidden = '<li data-while="movable" hidden>'
    assert hidden not in text(root.get(f"{RUNS}{run.id}/change/"))
    kinds = (EventType.STARTED, EventType.COMPLETED)
    append_history([Event(type=kind, execution_id=run.id, attempt=1, at=utcnow()) for kind in kinds])
    shown = text(root.get(f"{RUNS}{run.id}/change/"))
    assert hidden in shown and "Its attempt 1 has ended; that is not recorded yet." in shown
    assert "Why is it not running?" not in shown


def test_a_reported_end_and_what_its_worker_says_afterwards_are_told_apart(root: Client) -> None:
    make_job(schedule="now")
    run = Execution.objects.get()
    happen(run.id, EventType.STARTED, worker="w1")
    happen(run.id, EventType.COMPLETED, reason=REPORTED)
    happen(run.id, EventType.CANCELLED, worker="w1", reason="user")
    answer = root.get(f"{RUNS}{run.id}/change/")
    told = [(event.type, message) for _, event, message in answer.context["events"]]
    assert told[1:] == [
        ("JOB_COMPLETED", "Its end was reported by the run itself, or from where its work was done."),
        ("JOB_CANCELLED", "The end had been reported before: its worker stopped what was left."),
    ]
    assert answer.context["states"][-1]["state"] == state_cell("Completed Normally")
    assert any("reported by the run itself" in cause.sentence for cause in answer.context["causes"])


def test_an_empty_list_says_why_once(root: Client) -> None:
    for page in (JOBS, RUNS):
        shown = text(root.get(page))
        assert shown.count("punctual-note") == 1
        assert "No results found" not in shown and "0 shown" not in shown


def test_a_running_one_is_asked_to_stop(root: Client) -> None:
    make_job(schedule="now")
    run = Execution.objects.get()
    happen(run.id, EventType.STARTED, worker="w1")
    assert "asked to stop" in text(root.post(f"{RUNS}{run.id}/cancel/", follow=True))


def test_no_run_can_be_added_changed_or_deleted(root: Client) -> None:
    make_job()
    run = Execution.objects.get()
    assert root.get(f"{RUNS}add/").status_code == 403
    assert root.post(f"{RUNS}{run.id}/change/", {"state": "Cancelled"}).status_code == 403
    assert root.post(f"{RUNS}{run.id}/delete/", {"post": "yes"}).status_code == 403
    root.post(RUNS, {"action": "delete_selected", "_selected_action": [str(run.id)], "post": "yes"})
    assert Execution.objects.get().state == State.WAITING
    assert not admin.site.is_registered(ExecutionEvent)


@pytest.mark.parametrize("path", ["change/", "run/", "cancel/", "retry/", "history/"])
def test_what_is_not_there_leads_to_no_fault(root: Client, path: str) -> None:
    root.raise_request_exception = False
    for page in (JOBS, RUNS):
        for name in ("x", "0193e4a0-0000-7000-8000-000000000000"):
            for ask in (root.get, root.post):
                assert ask(f"{page}{name}/{path}").status_code in {302, 403, 404, 405}


def test_staff_see_and_touch_only_what_is_their_teams(root: Client, staff_of: StaffOf) -> None:
    mine, theirs = make_job(name="mine"), make_job(name="theirs", owner="marketing")
    mia = staff_of("mia", "data-engineering")
    foreign = Execution.objects.get(job_id=theirs.id)

    assert [job.name for job in mia.get(JOBS).context["cl"].result_list] == ["mine"]
    assert [run.job_id for run in mia.get(RUNS).context["cl"].result_list] == [mine.id]
    assert "marketing" not in text(mia.get(JOBS)) + text(mia.get(RUNS)) + text(mia.get(f"{JOBS}add/"))
    for address in (f"{JOBS}{theirs.id}/change/", f"{RUNS}{foreign.id}/change/"):
        assert mia.get(address).status_code in {302, 404}
    for address in (f"{JOBS}{theirs.id}/run/", f"{RUNS}{foreign.id}/cancel/", f"{RUNS}{foreign.id}/retry/"):
        assert mia.post(address).status_code == 404
    mia.post(JOBS, {"action": "run_now", "_selected_action": [str(theirs.id)]})
    assert Execution.objects.filter(job_id=theirs.id).count() == 1
    assert list(mia.post(f"{JOBS}add/", {**FORM, "owner": "marketing"}).context["adminform"].form.errors) == [
        "owner"
    ]
    assert mia.post(f"{JOBS}add/", FORM).status_code == 302


def test_staff_of_no_team_see_nothing_and_others_do_not_get_in(root: Client, staff_of: StaffOf) -> None:
    make_job()
    nora = staff_of("nora")
    assert nora.get(JOBS).context["cl"].result_list == []
    assert nora.get(RUNS).context["cl"].result_list == []
    assert nora.get(f"{JOBS}add/").status_code == 403
    User.objects.filter(username="nora").update(is_staff=False)
    assert nora.get(JOBS).status_code == 302


TASK = {"name": "load", "type": "Python", "command": "python load.py", "env": "", "parameters": "{}"}


def test_a_task_is_added_changed_and_deleted(root: Client) -> None:
    page = "/admin/jobs/task/"
    assert root.post(f"{page}add/", {**TASK, "parameters": '{"day": "{{ ds }}"}'}).status_code == 302
    task = Task.objects.get()
    assert (task.parameters, task.env) == ({"day": "{{ ds }}"}, {})
    assert "{{ ds }}" in text(root.get(f"{page}{task.id}/change/"))
    assert root.post(f"{page}{task.id}/change/", {**TASK, "command": "python other.py"}).status_code == 302
    task.refresh_from_db()
    assert task.command == "python other.py"
    assert root.post(f"{page}{task.id}/delete/", {"post": "yes"}).status_code == 302
    assert not Task.objects.exists()


def test_what_a_job_says_of_its_container_is_read_kept_and_shown(root: Client) -> None:
    given = '{"resources": {"memory": {"limit": 2147483648}}, "secretEnv": {"PW": "data-engineering/x"}}'
    assert root.post(f"{JOBS}add/", {**FORM, "container": given}).status_code == 302
    job = Job.objects.get()
    assert job.container["resources"] == {"memory": {"limit": "2Gi"}}
    page = text(root.get(f"{JOBS}{job.id}/change/"))
    assert "secretEnv" in page and "&quot;limit&quot;: &quot;2Gi&quot;" in page
    assert root.post(f"{JOBS}{job.id}/change/", {**FORM, "container": ""}).status_code == 302
    job.refresh_from_db()
    assert job.container == {}
    Job.objects.update(archived_at=utcnow(), container={"resources": {"memory": {"limit": "2Gi"}}})
    assert "resources.memory.limit: 2Gi" in text(root.get(f"{JOBS}{job.id}/change/"))


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("name", "a\x1bb"),
        ("command", "{% for %}"),
        ("command", "python 'x"),
        ("command", "  "),
        ("command", "{{ " + "(" * 5000 + " }}"),
        ("image", "a\u202eb"),
        ("env", '{"a": 1}'),
        ("env", '{"PUNCTUAL_ATTEMPT": "1"}'),
        ("env", '{"a": "\\u0000"}'),
        ("parameters", '{"a": "{{ %s }}"}' % ("9" * 5000)),
        ("parameters", "[]"),
        ("container", '{"resources": {"memory": {"limit": 1}}}'),
        ("container", '{"resources": {"cpu": {"limit": "nan"}}}'),
        ("container", '{"network": "host"}'),
        ("container", '{"secretEnv": {"A": "no-team"}}'),
        ("container", '{"podTemplate": {"spec": {"hostPID": true}}}'),
    ],
)
def test_a_task_obeys_the_rules_of_a_job(root: Client, field: str, value: str) -> None:
    answer = root.post("/admin/jobs/task/add/", {**TASK, field: value})
    assert list(answer.context["adminform"].form.errors) == [field]
    assert not Task.objects.exists()


@pytest.mark.parametrize("shared", ["task", "pool"])
def test_what_is_shared_is_read_by_all_and_made_by_permission(staff_of: StaffOf, shared: str) -> None:
    mia = staff_of("mia", "data-engineering")
    assert mia.get(f"/admin/jobs/{shared}/").status_code == 200
    assert mia.get(f"/admin/jobs/{shared}/add/").status_code == 403
    mia_user = User.objects.get(username="mia")
    mia_user.user_permissions.add(Permission.objects.get(codename=f"add_{shared}"))
    assert mia.get(f"/admin/jobs/{shared}/add/").status_code == 200
    mia_user.groups.add(Group.objects.get(name="viewers"))
    assert mia.get(f"/admin/jobs/{shared}/add/").status_code == 403


def test_a_viewer_is_offered_nothing_that_is_not_his(root: Client, staff_of: StaffOf) -> None:
    job = make_job()
    page = f"/admin/jobs/job/{job.id}/change/"
    mia = staff_of("mia", "data-engineering")
    assert all(act in text(mia.get(page)) for act in ("/run/", "/pause/", "/archive/", 'name="_save"'))
    User.objects.get(username="mia").groups.add(Group.objects.get(name="operators"))
    assert "/run/" in (shown := text(mia.get(page))) and "/archive/" not in shown
    vic = staff_of("vic", "data-engineering", "viewers")
    shown = text(vic.get(page))
    assert not [act for act in ("/run/", "/pause/", "/archive/", 'name="_save"') if act in shown]
    refused = vic.post(f"/admin/jobs/job/{job.id}/run/")
    assert refused.status_code == 403
    assert "an administrator gives it by the group &#x27;operators&#x27;" in refused.content.decode()


def test_every_page_of_the_admin_can_be_opened(root: Client) -> None:
    make_job()
    for model in admin.site._registry:
        address = f"/admin/{model._meta.app_label}/{model._meta.model_name}/"
        assert root.get(address).status_code == 200, address
    assert "Punctual" in text(root.get("/admin/"))


def test_what_changes_on_the_page_of_a_run_is_drawn_anew(root: Client, staff_of: StaffOf) -> None:
    """The page asks for it every few seconds: its state, why it is not running, its states and events."""
    make_job()
    run = Execution.objects.get()
    live = f"{RUNS}{run.id}/live/"
    page = text(root.get(f"{RUNS}{run.id}/change/"))
    assert f'data-address="{live}"' in page
    assert f'data-address="/api/v1/executions/{run.id}/logs"' in page
    waiting = text(root.get(live))
    assert 'data-state="Waiting" data-movable="true" data-ended="false"' in waiting
    assert "Why is it not running?" in waiting
    assert "It is due in" in waiting
    happen(run.id, EventType.STARTED, worker="w1")
    happen(run.id, EventType.COMPLETED, reason="succeeded", exit_code=0)
    ended = text(root.get(live))
    assert 'data-state="Completed Normally" data-movable="false" data-ended="true"' in ended
    assert "It ended as it should." in ended
    assert "<html" not in ended
    assert staff_of("otto", "marketing").get(live).status_code == 404
    assert Client().get(live).status_code == 302
