"""``manage.py apply_jobs``: what files declare is what there is, all of it or nothing."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from io import StringIO
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from django.contrib.auth.models import Group
from django.core.management import CommandError, call_command
from django.db import connection

from executions.models import Execution
from executions.store import Store
from jobs.models import Job, Pool
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.texts import control_character
from scheduler_project.standalone.options import BASE_DIR
from tests.integration.jobs.chain import new_job

pytestmark = pytest.mark.django_db
TWO = """
- &nightly
  name: nightly
  owner: ops
  type: Script
  command: |
    echo one
    echo two
  schedule: {cron: 0 2 * * *, timezone: Europe/Berlin}
- <<: *nightly
  name: beat
  schedule: {every: 10s}
  retries: 3
"""
Writing = Callable[[str], str]


@pytest.fixture(autouse=True)
def parts(db: None, store: Store) -> None:
    """The commands need the database and Redis."""


@pytest.fixture
def written(tmp_path: Path) -> Writing:
    def write(text: str) -> str:
        path = tmp_path / "jobs.yaml"
        path.write_text(text)
        return str(path)

    return write


def apply(path: str, *options: str) -> str:
    out = StringIO()
    call_command("apply_jobs", path, *options, stdout=out)
    return out.getvalue()


def dry_run(path: str, *options: str) -> tuple[str, int]:
    """What is shown, and the exit status."""
    out = StringIO()
    try:
        call_command("apply_jobs", path, "--dry-run", *options, stdout=out)
    except SystemExit as end:
        return out.getvalue(), int(end.code or 0)
    return out.getvalue(), 0


def refusal(path: str, *options: str) -> list[str]:
    with pytest.raises(CommandError) as caught:
        apply(path, *options)
    return [line.removeprefix(path) for line in str(caught.value).splitlines()]


def jobs() -> dict[str, dict[str, Any]]:
    return {job["name"]: dict(job) for job in Job.objects.filter(archived_at=None).values()}


def test_declared_jobs_are_made_with_their_first_runs(written: Writing) -> None:
    said = apply(written(TWO))

    assert "+ team ops" in said
    assert said.endswith("Done: 2 created, 0 updated, 0 archived, 0 as they are.\n")
    nightly, beat = jobs()["nightly"], jobs()["beat"]
    assert nightly["schedule"]["timezone"] == "Europe/Berlin"
    assert (nightly["retries"], beat["retries"]) == (0, 3)
    assert {nightly["managed_by"], beat["managed_by"]} == {"apply_jobs"}
    assert nightly["created_by"] == "manage.py apply_jobs"  # a blank: no user is called so
    waiting = Execution.objects.filter(state="Waiting").values_list("job_id", flat=True)
    assert set(waiting) == {nightly["id"], beat["id"]}


def test_the_second_time_there_is_nothing_to_do(written: Writing) -> None:
    path = written(TWO + "- {<<: *nightly, name: once, schedule: {after: 5m}}\n")
    apply(path)
    before = jobs()

    assert apply(path) == "Nothing to do: 3 jobs are as declared.\n"
    assert dry_run(path) == ("Nothing to do: 3 jobs are as declared.\n", 0)
    assert jobs() == before


def test_what_a_file_holds_does_not_command_the_terminal(written: Writing) -> None:
    path = written('{name: a, owner: ops, type: Script, schedule: "@daily", command: "echo \u202e\\e[31m"}')
    said = StringIO()
    with pytest.raises(SystemExit):
        call_command("apply_jobs", path, "--dry-run", stdout=said)
    assert "echo \\u202e" in said.getvalue()
    assert control_character(said.getvalue().replace("\n", "")) == ""


def test_a_dry_run_shows_the_difference_and_changes_nothing(written: Writing) -> None:
    said, status = dry_run(written(TWO))

    assert status == 2
    assert "+ create ops/nightly" in said
    assert "+  echo two" in said
    assert "+  timezone: Europe/Berlin" in said
    assert "2 to create, 0 to update" in said
    assert jobs() == {}
    assert not Group.objects.filter(name="ops").exists()
    assert not Execution.objects.exists()


def test_all_that_is_wrong_is_told_and_nothing_is_done(written: Writing) -> None:
    path = written(TWO + "- {<<: *nightly, name: bad, schedule: 61 * * * *, retries: x}\n")
    first, *problems = refusal(path)
    assert first == "Nothing was changed."
    assert [problem.split(": ")[:2] for problem in problems] == [[":14", "schedule"], [":14", "retries"]]
    assert jobs() == {}


def test_what_only_the_database_can_refuse_is_told_for_all_jobs(written: Writing) -> None:
    ended = "schedule: {cron: 0 2 * * *, end: 2020-01-01T00:00:00Z}"
    path = written(TWO + f"- {{<<: *nightly, name: c, {ended}}}\n- {{<<: *nightly, name: d, {ended}}}\n")
    _, *problems = refusal(path)
    assert problems == [f":{line}: schedule: This schedule does not fire after now." for line in (14, 15)]
    assert jobs() == {}


def test_a_job_that_was_made_otherwise_is_left_alone_unless_it_is_adopted(written: Writing) -> None:
    new_job("@hourly", utcnow(), owner="team")
    path = written("{name: nightly, owner: team, type: Script, command: 'true', schedule: '@hourly'}")
    _, problem = refusal(path)
    assert "has a job of this name that was not made from files" in problem

    apply(path, "--adopt")
    assert jobs()["nightly"]["managed_by"] == "apply_jobs"
    assert "Nothing to do" in apply(path)
    _, problem = refusal(path, "--origin", "other")
    assert "belongs to 'apply_jobs'" in problem


def test_what_differs_is_changed_and_a_field_that_is_left_out_has_its_default(written: Writing) -> None:
    apply(written(TWO))
    before = jobs()
    path = written(TWO.replace("echo two", "echo three").replace("  retries: 3\n", ""))

    said, status = dry_run(path)
    assert (status, jobs()) == (2, before)
    assert "-  echo two\n+  echo three" in said
    assert "-retries: 3\n+retries: 0" in said
    assert "anchor" not in said

    assert "0 created, 2 updated" in apply(path)
    nightly, beat = jobs()["nightly"], jobs()["beat"]
    assert nightly["id"] == before["nightly"]["id"]
    assert nightly["command"] == beat["command"] == "echo one\necho three\n"
    assert (beat["retries"], beat["schedule"]) == (0, before["beat"]["schedule"])
    assert "Nothing to do" in apply(path)


def test_what_was_changed_by_another_route_is_set_back(written: Writing) -> None:
    path = written(TWO)
    apply(path)
    Job.objects.filter(name="nightly").update(retries=9, paused_at=utcnow())
    assert "-retries: 9\n+retries: 0" in apply(path)
    nightly = jobs()["nightly"]
    assert nightly["retries"] == 0
    assert nightly["paused_at"] is not None  # a pause is no field of a declaration
    assert nightly["managed_by"] == "apply_jobs"


@pytest.mark.django_db(transaction=True)
def test_another_schedule_moves_the_run_that_waits(written: Writing) -> None:
    apply(written(TWO))
    apply(written(TWO.replace("0 2 * * *, timezone: Europe/Berlin", "15 4 * * *")))
    job = jobs()["nightly"]
    (waiting,) = Execution.objects.filter(job_id=job["id"], state="Waiting")
    assert (waiting.scheduled_for.hour, waiting.scheduled_for.minute) == (4, 15)


@pytest.mark.parametrize("schedule", ["now", "{after: 5m}"])
def test_a_job_that_counts_from_its_creation_is_not_run_again_by_a_change(
    written: Writing, schedule: str
) -> None:
    text = f"{{name: once, owner: ops, type: Script, command: 'true', schedule: {schedule}, retries: 1}}"
    apply(written(text))
    due = jobs()["once"]["schedule"]
    path = written(text.replace("retries: 1", "retries: 2").replace("5m", "6m"))
    apply(path)
    assert jobs()["once"]["schedule"] == due
    assert jobs()["once"]["retries"] == 2
    assert "Nothing to do" in apply(path)


@pytest.mark.django_db(transaction=True)
def test_pruning_archives_what_is_no_longer_declared_and_nothing_else(written: Writing) -> None:
    apply(written(TWO))
    new_job("@hourly", utcnow(), name="by hand", owner="ops")
    apply(written(TWO.replace("name: ", "name: other ")), "--origin", "other")
    path = written(TWO.partition("- <<:")[0])

    assert "Nothing to do" in apply(path)
    said, status = dry_run(path, "--prune")
    assert (status, "- archive ops/beat" in said, "1 to archive" in said) == (2, True, True)
    assert len(jobs()) == 5
    apply(path, "--prune")

    assert set(jobs()) == {"nightly", "by hand", "other nightly", "other beat"}
    beat = Job.objects.get(name="beat")
    assert beat.archived_at is not None
    assert not Execution.objects.filter(job_id=beat.id, state="Waiting").exists()
    assert "Nothing to do" in apply(path, "--prune")


@pytest.mark.django_db(transaction=True)
def test_two_that_apply_at_once_take_turns(written: Writing) -> None:
    path, meeting = written(TWO), Barrier(2)

    def apply_together(_: int) -> str:
        try:
            meeting.wait(10)
            return apply(path)
        finally:
            connection.close()

    with ThreadPoolExecutor(2) as both:
        said = sorted(both.map(apply_together, range(2)))
    assert [text.startswith("Nothing to do") for text in said] == [False, True]
    assert len(jobs()) == 2


def test_pruning_by_files_that_declare_nothing_is_refused(written: Writing) -> None:
    apply(written(TWO))
    with pytest.raises(CommandError, match="declare no job"):
        apply(written("# nothing\n"), "--prune")
    assert len(jobs()) == 2


@pytest.mark.parametrize("origin", ["", " "])
def test_an_empty_origin_is_that_of_everybody_elses_jobs(written: Writing, origin: str) -> None:
    path = written(TWO)
    apply(path)
    with pytest.raises(CommandError, match=f"--origin: {origin!r} is not an origin"):
        apply(path, "--origin", origin, "--prune")


def test_a_name_that_was_archived_can_be_declared_again(written: Writing) -> None:
    path = written(TWO)
    apply(path)
    apply(written(TWO.partition("- <<:")[0]), "--prune")
    assert "1 created" in apply(written(TWO))
    assert Job.objects.filter(name="beat").count() == 2


def test_the_owner_of_the_command_line_is_for_jobs_that_name_none(written: Writing) -> None:
    job = "type: Script, command: 'true', schedule: '@daily'"
    apply(written(f"- {{name: a, {job}}}\n- {{name: b, owner: mine, {job}}}\n"), "--owner", "ops")
    assert dict(Job.objects.values_list("name", "owner__name")) == {"a": "ops", "b": "mine"}


@pytest.mark.parametrize("path", ["/nowhere/jobs.yaml", "/"])
def test_a_file_that_cannot_be_read_is_told(path: str) -> None:
    with pytest.raises(CommandError, match=path):
        apply(path)


def test_the_example_applies_and_is_then_as_declared() -> None:
    path = str(BASE_DIR / "examples/jobs.yaml")
    assert "Done: 3 created" in apply(path)
    assert apply(path) == "Nothing to do: 3 jobs are as declared.\n"
    assert jobs()["sales-of-the-month"]["retries"] == 3


CONTAINED = """
- name: nightly
  owner: ops
  type: Script
  command: 'true'
  schedule: '@daily'
  container:
    resources:
      memory: {limit: %s}
      cpu: {limit: 500m}
    labels: {example.org/tier: nightly}
    volumes:
    - {scratch: 1Gi, target: /work}
"""


def test_what_differs_in_a_container_is_shown_by_its_path(written: Writing) -> None:
    apply(written(CONTAINED % "1Gi"))
    assert apply(written(CONTAINED % 1073741824)) == "Nothing to do: 1 jobs are as declared.\n"

    said, _ = dry_run(written(CONTAINED % "2Gi" + "    - {scratch: 2Mi, target: /more}\n    user: '1000'\n"))
    changed = [line for line in said.splitlines() if line[:1] in "+-" and line[1:2] != line[:1]]
    assert changed == [
        "-container.resources.memory.limit: 1Gi",
        "+container.resources.memory.limit: 2Gi",
        "+container.user: '1000'",
        "+container.volumes.1.scratch: 2Mi",
        "+container.volumes.1.target: /more",
    ]


RETRIED = TWO + "  retryPolicy: {backoff: exponential, maxDelay: %s}\n"


def test_a_retry_policy_in_a_file_is_compared_by_what_it_means(written: Writing) -> None:
    apply(written(RETRIED % "1h"))
    assert "Nothing to do" in apply(written(RETRIED % "60m"))
    said, _ = dry_run(written(RETRIED % "2h"))
    assert "-  maxDelay: 1h" in said
    assert "+  maxDelay: 2h" in said
    _, problem = refusal(written(RETRIED % "soon"))
    assert "retryPolicy.maxDelay: 'soon' is not a length of time" in problem


def test_what_is_wrong_in_a_container_is_told_with_its_line(written: Writing) -> None:
    bad = CONTAINED % "lots" + "    - {target: /x, source: /etc}\n    - {claim: A, target: /y}\n    uesr: x\n"
    _, *problems = refusal(written(bad))
    assert [problem.split(": ")[:2] for problem in problems] == [
        [":16", "container.uesr"],
        [":9", "container.resources.memory.limit"],
        [":15", "container.volumes.2.claim"],
    ]


def test_what_is_not_allowed_is_told_for_each_job(written: Writing) -> None:
    path = written(CONTAINED % "1Gi" + "    - {target: /x, source: /etc}\n    network: host\n")
    _, *problems = refusal(path)
    assert [problem.split(": ")[1] for problem in problems] == [
        "container.network",
        "container.volumes.1.source",
    ]
    assert "PUNCTUAL_ALLOW_VOLUMES" in problems[1]
    assert jobs() == {}


def test_a_job_in_a_file_names_a_pool_that_there_is(written: Writing) -> None:
    text = TWO + "  pool: warehouse\n  maxActive: 2\n  queue: etl\n  priority: low\n"
    new_job({"cron": "0 2 * * *"}, utcnow(), owner="ops", name="other")
    with pytest.raises(CommandError, match="pool: There is no pool 'warehouse'"):
        apply(written(text))
    pool = Pool.objects.create(name="warehouse", slots=2)
    apply(written(text))
    job = Job.objects.get(name="beat")
    assert (job.pool, job.max_active, job.queue, job.priority) == (pool, 2, "etl", "low")
    assert "Nothing to do" in apply(written(text))
