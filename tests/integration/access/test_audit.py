"""The audit trail: every change by a person is on record, for his team to read and for nobody to mend."""

from __future__ import annotations

import json
from datetime import timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from django.core.management import call_command
from django.db import DatabaseError, connection, transaction
from django.test import Client
from rest_framework.test import APIClient

from access.audit import changes_of, newest_of, records_of
from access.masking import HIDDEN, masked
from access.trail.models import ChangeRecord
from jobs.models import Job
from scheduler_project.kernel.clock import utcnow
from tests.integration.api.conftest import (  # noqa: F401 -- fixtures
    anonymous,
    client_of,
    create,
    member,
    outsider,
    problem_of,
    root,
)

LIST = "/admin/trail/changerecord/"
LATER = (utcnow() + timedelta(days=1)).isoformat()


def trail(client: APIClient, job_id: str, **query: Any) -> dict[str, Any]:
    answer = client.get(f"/api/v1/jobs/{job_id}/changes", query)
    assert answer.status_code == 200, answer.content
    body: dict[str, Any] = answer.json()
    return body


# --- what is on record ----------------------------------------------------------------------


def test_a_job_that_is_made_changed_paused_resumed_and_run_says_so(member: APIClient) -> None:  # noqa: F811
    made = create(member, retries=3)
    path = f"/api/v1/jobs/{made['jobId']}"
    assert member.patch(path, {"retries": 5, "env": {"A": "1"}}, format="json").status_code == 200
    assert member.patch(path, {"retries": 5}, format="json").status_code == 200  # nothing differs
    for what in ("pause", "pause", "resume"):
        assert member.post(f"{path}/{what}").status_code == 200
    run = member.post(f"{path}/run", {"parameters": {"day": "x"}}, format="json").json()["executionId"]
    assert member.post(f"/api/v1/executions/{run}/cancel").status_code == 200
    found = trail(member, made["jobId"])["results"]
    assert [change["action"] for change in found] == [
        "cancelled",
        "run",
        "resumed",
        "paused",
        "changed",
        "created",
    ]
    assert {change["who"] for change in found} == {"mia"}
    cancelled, ran, _, _, changed, created = found
    assert cancelled["subject"] == f"run {run}"
    assert ran["fields"]["executionId"] == {"before": None, "after": run}
    assert ran["fields"]["parameters.day"] == {"before": None, "after": "x"}
    assert changed["fields"] == {
        "retries": {"before": 3, "after": 5},
        "env.A": {"before": None, "after": HIDDEN},
    }
    assert created["fields"]["name"]["after"] == changed["subject"]
    assert [change["at"] for change in found] == sorted((change["at"] for change in found), reverse=True)


def test_a_run_that_is_moved_and_a_job_that_is_deleted_say_so(member: APIClient) -> None:  # noqa: F811
    made = create(member)
    at = {"at": LATER}
    path = f"/api/v1/executions/{made['firstExecutionId']}/reschedule"
    assert member.post(path, at, format="json").status_code == 200
    assert member.delete(f"/api/v1/jobs/{made['jobId']}").status_code == 204
    job = Job.objects.get(id=made["jobId"])
    assert [change.action for change in changes_of(job, 9)] == ["deleted", "moved", "created"]


def test_what_fails_is_not_on_record(member: APIClient, outsider: APIClient) -> None:  # noqa: F811
    made = create(member)
    path = f"/api/v1/jobs/{made['jobId']}"
    assert member.patch(path, {"retries": 1000}, format="json").status_code == 400
    assert outsider.post(f"{path}/pause").status_code == 404
    assert member.post("/api/v1/jobs", {"name": "x"}, format="json").status_code == 400
    assert ChangeRecord.objects.filter(job_id__isnull=False).count() == 1


@pytest.fixture
def ada(root: APIClient) -> Client:  # noqa: F811 -- it empties Redis
    """A superuser in the admin."""
    browser = Client()
    browser.force_login(User.objects.create_superuser("ada"))
    return browser


def of_kind(model: str) -> list[tuple[str, str, Any]]:
    found = ChangeRecord.objects.filter(content_type__model=model).order_by("id")
    return [(record.who, record.what, record.changes) for record in found]


def test_pools_teams_and_users_in_the_admin_are_on_record(ada: Client) -> None:
    before = set(ChangeRecord.objects.values_list("id", flat=True))
    form = {"name": "warehouse", "slots": "2", "team": "", "description": "of postgresql://me:hunter2@h"}
    assert ada.post("/admin/jobs/pool/add/", form, REMOTE_ADDR="192.0.2.7").status_code == 302
    bob = User.objects.create_user("bob", password="first-secret")
    group = Group.objects.create(name="sales")
    form = {"username": "bob", "is_active": "on", "groups": str(group.pk)}
    form |= {"date_joined_0": "2026-01-01", "date_joined_1": "00:00:00"}
    assert ada.post(f"/admin/auth/user/{bob.pk}/change/", form).status_code == 302
    (pool,) = ChangeRecord.objects.filter(content_type__model="pool").exclude(id__in=before)
    assert (pool.who, pool.what, pool.remote_addr) == ("ada", "created", "192.0.2.7")
    assert pool.changes["slots"] == [None, 2]
    assert pool.changes["description"][1] == f"of postgresql://me:{HIDDEN}@h"
    assert (
        "ada",
        "changed",
        {"groups": {"type": "m2m", "operation": "add", "objects": ["sales"]}},
    ) in of_kind("user")


def test_a_password_that_is_changed_is_on_record_and_not_what_it_is(ada: Client) -> None:
    bob = User.objects.create_user("bob", password="first-secret")
    old = bob.password
    form = {"password1": "Second-secret-9", "password2": "Second-secret-9", "usable_password": "true"}
    assert ada.post(f"/admin/auth/user/{bob.pk}/password/", form).status_code == 302
    bob.refresh_from_db()
    assert of_kind("user")[-1] == ("ada", "changed", {"password": [HIDDEN, HIDDEN]})
    kept = json.dumps(list(ChangeRecord.objects.values()), default=str)
    assert not any(secret in kept for secret in (old, bob.password, "secret-9", "pbkdf2", "md5$"))


def test_files_and_crontabs_are_on_record(ada: Client, tmp_path: Path) -> None:
    Group.objects.create(name="data-engineering")
    (tmp_path / "tab").write_text("0 2 * * * echo night\n")
    call_command(
        "import_crontab", tmp_path / "tab", "--owner", "data-engineering", "--apply", stdout=StringIO()
    )
    (tmp_path / "jobs.yaml").write_text(
        "- {name: a, type: Script, command: echo a, schedule: '0 2 * * *', owner: data-engineering}\n"
    )
    call_command("apply_jobs", tmp_path / "jobs.yaml", stdout=StringIO())
    jobs = Job.objects.all()
    assert len(jobs) == 2
    for job in jobs:
        (change,) = changes_of(job, 9)
        assert (change.action, change.who) == ("created", job.created_by)


# --- what is not ----------------------------------------------------------------------------


def test_what_looks_like_a_secret_is_not_on_record(member: APIClient) -> None:  # noqa: F811
    env = {"DB_PASSWORD": "hunter2", "API_KEY": "hunter2", "URL": "postgresql://me:hunter2@host/db", "A": "b"}
    made = create(member, env=env, command="curl https://me:hunter2@host -u me:hunter2 --token hunter2")
    path = f"/api/v1/jobs/{made['jobId']}"
    assert member.patch(path, {"env": {**env, "DB_PASSWORD": "hunter22"}}, format="json").status_code == 200
    changed, created = trail(member, made["jobId"])["results"]
    assert changed["fields"] == {"env.DB_PASSWORD": {"before": HIDDEN, "after": HIDDEN}}
    assert {name: created["fields"][f"env.{name}"]["after"] for name in env} == dict.fromkeys(env, HIDDEN)
    assert "hunter2" not in json.dumps(list(ChangeRecord.objects.values()), default=str)


@pytest.mark.parametrize(
    ("value", "name", "kept"),
    [
        ("x", "PGPASSWORD", HIDDEN),
        ("x", "github_token", HIDDEN),
        ({"a": {"client_secret": "x", "b": 1}}, "", {"a": {"client_secret": HIDDEN, "b": 1}}),
        (["redis://:pw@h"], "", [f"redis://:{HIDDEN}@h"]),
        ("https://ghost@host/x", "", f"https://{HIDDEN}@host/x"),
        ("curl -H 'Authorization: Digest a b' x", "", f"curl -H 'Authorization: {HIDDEN}' x"),
        ("send Bearer abc.def-123 on", "", f"send Bearer {HIDDEN} on"),
        ("curl -u me:pass-1 https://h", "", f"curl -u me:{HIDDEN} https://h"),
        ("curl --user=me:pass-1 x", "", f"curl --user=me:{HIDDEN} x"),
        ("x --db-password=abc y", "", f"x --db-password={HIDDEN} y"),
        ("x --api-key 'a b' y", "", f"x --api-key {HIDDEN} y"),
        ("GITHUB_TOKEN=abc make all", "", f"GITHUB_TOKEN={HIDDEN} make all"),
        ('{"password": "a b", "day": "x"}', "", f'{{"password": {HIDDEN}, "day": "x"}}'),
        ("https://h/?day=1&signature=abc&x=2", "", f"https://h/?day=1&signature={HIDDEN}&x=2"),
        ("a -----BEGIN RSA PRIVATE KEY-----\nMII\n-----END RSA PRIVATE KEY----- b", "", f"a {HIDDEN} b"),
        ("x", "DBPW", HIDDEN),
        ("x", "signing_key", HIDDEN),
        ("x", "SENTRY_DSN", HIDDEN),
        ("x", "slack_webhook", HIDDEN),
        ({"env": [{"name": "A", "value": "x"}]}, "", {"env": [{"name": "A", "value": HIDDEN}]}),
        ({"env": {"A": "x"}}, "", {"env": {"A": HIDDEN}}),
        ({"env": "FOO=bar BAZ=x"}, "", {"env": HIDDEN}),
        ({"env": [["DB", "x"], "A=x"]}, "", {"env": [HIDDEN, HIDDEN]}),
        ({"env": [{"name": "A", "val": "x"}]}, "", {"env": [{"name": "A", "val": HIDDEN}]}),
        ({"env": {"name": "x", "A": "x"}}, "", {"env": {"name": HIDDEN, "A": HIDDEN}}),
        ({"variables": {"A": {"B": "x"}}}, "", {"variables": {"A": HIDDEN}}),
        ({"a": {"env_vars": 7}}, "", {"a": {"env_vars": HIDDEN}}),
        ({"token": ["x", {"a": 1}]}, "", {"token": HIDDEN}),
        (
            {
                "env": [
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "p"}}},
                    {"name": "B", "valueFrom": "x"},
                ]
            },
            "",
            {
                "env": [
                    {"name": "A", "valueFrom": {"fieldRef": {"fieldPath": "p"}}},
                    {"name": "B", "valueFrom": HIDDEN},
                ]
            },
        ),
        ('{"password": "a\\"x', "", f'{{"password": {HIDDEN}'),
        ('{"password": "a\\"x y", "day": 1}', "", f'{{"password": {HIDDEN}, "day": 1}}'),
        ('{"password": "cut off x', "", f'{{"password": {HIDDEN}'),
        ('{"password": ["x y"]}', "", f'{{"password": {HIDDEN}]}}'),
        ("run --token 'cut off x", "", f"run --token {HIDDEN}"),
        (
            "the author goes upward: report.py --key-order asc",
            "author",
            "the author goes upward: report.py --key-order asc",
        ),
        ("", "password", ""),
        (7, "retries", 7),
        ("x" * 5000, "", "x" * 4000 + "… (5000 characters)"),
    ],
)
def test_masking(value: Any, name: str, kept: Any) -> None:
    assert masked(value, name) == kept


# --- who sees what --------------------------------------------------------------------------


def test_another_team_sees_nothing_of_it(
    member: APIClient,  # noqa: F811
    outsider: APIClient,  # noqa: F811
    anonymous: APIClient,  # noqa: F811
) -> None:
    path = f"/api/v1/jobs/{create(member)['jobId']}/changes"
    assert problem_of(outsider.get(path), 404)
    assert problem_of(anonymous.get(path), 401)
    assert problem_of(member.get(path, {"cursor": "x"}), 400)


def test_the_trail_comes_in_pages(member: APIClient) -> None:  # noqa: F811
    job_id = create(member)["jobId"]
    for _ in range(2):
        member.post(f"/api/v1/jobs/{job_id}/pause")
        member.post(f"/api/v1/jobs/{job_id}/resume")
    first = trail(member, job_id, limit=3)
    rest = member.get(first["next"]).json()
    assert rest["next"] is None
    actions = [change["action"] for change in (*first["results"], *rest["results"])]
    assert actions == ["resumed", "paused", "resumed", "paused", "created"]


def staff(name: str, *teams: str) -> Client:
    user, _ = User.objects.get_or_create(username=name, is_staff=True)
    user.groups.set([Group.objects.get_or_create(name=team)[0] for team in teams])
    browser = Client()
    browser.force_login(user)
    return browser


def test_the_admins_list_holds_what_is_the_own_teams(member: APIClient, ada: Client) -> None:  # noqa: F811
    name = Job.objects.get(id=create(member, name="quarterly")["jobId"]).name
    own, other = staff("mo", "data-engineering"), staff("oz", "marketing", "zebras")
    assert name in own.get(LIST).content.decode()
    assert name not in other.get(LIST).content.decode()
    assert name in ada.get(LIST).content.decode()
    assert "zebras" in ada.get(LIST).content.decode(), "users and groups are for superusers"
    assert "zebras" not in own.get(LIST).content.decode()


def test_the_admins_list_has_keyset_pages_and_counts_nothing(member: APIClient, ada: Client) -> None:  # noqa: F811
    job_id = create(member)["jobId"]
    for _ in range(30):
        member.post(f"/api/v1/jobs/{job_id}/pause")
        member.post(f"/api/v1/jobs/{job_id}/resume")
    with connection.execute_wrapper(no_count):
        page = ada.get(LIST, {"job": job_id})
        older = page.context["cl"].older
        assert page.context["cl"].result_count == 50
        assert ada.get(LIST + older).context["cl"].result_count == 11
    assert ada.get(LIST, {"job": "nonsense"}).status_code in (302, 400)


def no_count(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
    assert "count(" not in str(sql).lower()
    return execute(sql, params, many, context)


# --- nobody mends it ------------------------------------------------------------------------


def test_nobody_adds_changes_or_deletes_in_the_admin(member: APIClient, ada: Client) -> None:  # noqa: F811
    create(member)
    record = ChangeRecord.objects.first()
    assert record is not None
    assert ada.get(f"{LIST}add/").status_code == 403
    assert ada.post(f"{LIST}{record.pk}/delete/", {"post": "yes"}).status_code == 403
    ada.post(f"{LIST}{record.pk}/change/", {"who": "somebody else"})
    ada.post(LIST, {"action": "delete_selected", "_selected_action": str(record.pk), "post": "yes"})
    assert ChangeRecord.objects.get(pk=record.pk).who == record.who


def test_the_database_refuses_to_change_or_remove_what_is_on_record(member: APIClient) -> None:  # noqa: F811
    create(member)
    rows = ChangeRecord.objects.all()
    for attempt in (lambda: rows.update(who="x"), lambda: rows._raw_delete(using="default")):
        with pytest.raises(DatabaseError, match="append-only"), transaction.atomic():
            attempt()


def test_what_is_on_record_outlasts_the_user(member: APIClient) -> None:  # noqa: F811
    job = Job.objects.get(id=create(member)["jobId"])
    User.objects.get(username="mia").delete()
    (change,) = changes_of(job, 9)
    assert change.who == "mia"


# --- it stays fast --------------------------------------------------------------------------

FILL = """
INSERT INTO trail_changerecord (id, content_type_id, object_pk, object_repr, changes_text, action, timestamp,
    who, what, team_id, job_id)
SELECT gen_random_uuid(), 1, n::text, 'x', '', 1, now(), 'x', 'changed', 100000 + n %% 50, gen_random_uuid()
FROM generate_series(1, %s) AS n
"""


def test_a_page_is_found_by_an_index_whoever_asks(member: APIClient) -> None:  # noqa: F811
    job = Job.objects.get(id=create(member)["jobId"])
    with connection.cursor() as cursor:
        cursor.execute(FILL, [20_000])
        cursor.execute("ANALYZE trail_changerecord")
    assert "change_of_job" in records_of(job)[:50].explain()
    texts: list[str] = []

    def kept(execute: Any, sql: Any, params: Any, many: Any, context: Any) -> Any:
        texts.append(str(sql))
        return execute(sql, params, many, context)

    for teams in (None, frozenset({100_001}), frozenset({100_001, 100_002})):
        with connection.execute_wrapper(kept):
            assert len(newest_of(ChangeRecord.objects.all(), teams, None, 50)) == 50
    assert not any(" IN (SELECT" in text for text in texts)
    one_team = ChangeRecord.objects.filter(team_id=100_001).order_by("-id").values_list("id", flat=True)[:50]
    assert "change_of_team" in one_team.explain()
    assert "Seq Scan" not in ChangeRecord.objects.order_by("-id")[:50].explain()
