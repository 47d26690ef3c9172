"""Tokens: hashed, named, scoped, expiring, revocable; over REST, in the admin and by the command."""

from __future__ import annotations

import hashlib
import json
from datetime import timedelta
from importlib import import_module
from io import StringIO
from typing import Any

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, User
from django.core.management import CommandError, call_command
from django.db import IntegrityError, connection
from django.test import Client
from rest_framework.test import APIClient

from access.models import ApiToken
from access.policy import Forbidden, System
from access.tokens import (
    BadToken,
    TokenRequest,
    create_token,
    ensure_token,
    revoke_token,
    token_by_text,
)
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import Conflict, InvalidFields
from tests.tokens import token_of

pytestmark = pytest.mark.django_db
HOUR = timedelta(hours=1)


@pytest.fixture
def mia() -> User:
    user = User.objects.create_user("mia", is_staff=True)
    user.groups.add(Group.objects.create(name="data"))
    return user


@pytest.fixture
def root() -> User:
    return User.objects.create_superuser("root")


def rest(text: str, scheme: str = "Bearer") -> APIClient:
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"{scheme} {text}")
    return client


def test_only_its_digest_is_kept(mia: User) -> None:
    text = token_of(mia)
    assert text.startswith("punctual_") and len(text) == len("punctual_") + 43
    token = ApiToken.objects.get()
    assert bytes(token.digest) == hashlib.sha256(text.encode()).digest()
    with connection.cursor() as cursor:
        cursor.execute("SELECT to_jsonb(t)::text FROM access_apitoken t")
        assert text[len(token.prefix) :] not in cursor.fetchone()[0]


def test_a_lookup_is_one_by_the_index_of_digests(mia: User) -> None:
    token_of(mia)
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL enable_seqscan = off")
        cursor.execute("EXPLAIN SELECT * FROM access_apitoken WHERE digest = %s", [b"x" * 32])
        plan = " ".join(line for (line,) in cursor.fetchall())
    assert "access_apitoken_digest" in plan and "Index Cond" in plan


@pytest.mark.parametrize("scheme", ["Bearer", "Token", "bearer"])
def test_both_schemes_let_in(mia: User, scheme: str) -> None:
    assert rest(token_of(mia), scheme).get("/api/v1/jobs").status_code == 200


@pytest.mark.parametrize("what", ["expired", "revoked", "inactive", "unknown", "prefix", "digest"])
def test_a_token_that_counts_no_more_lets_nobody_in(mia: User, what: str) -> None:
    text = token_of(mia)
    token = ApiToken.objects.get()
    if what == "expired":
        ApiToken.objects.update(expires_at=utcnow())
    elif what == "revoked":
        revoke_token(token, mia, utcnow())
    elif what == "inactive":
        User.objects.update(is_active=False)
    else:
        digest = bytes(token.digest).hex()
        text = {"unknown": text + "x", "prefix": token.prefix, "digest": digest}[what]
    answer = rest(text).get("/api/v1/jobs")
    assert (answer.status_code, answer["WWW-Authenticate"]) == (401, 'Bearer realm="api"')
    assert ApiToken.objects.get().last_used_at is None


def test_the_last_use_is_noted_at_most_once_a_minute(mia: User) -> None:
    text, now = token_of(mia), utcnow()
    for seconds, noted in ((0, 0), (59, 0), (60, 60), (61, 60)):
        token_by_text(text, now + timedelta(seconds=seconds))
        assert ApiToken.objects.get().last_used_at == now + timedelta(seconds=noted)


def test_a_token_expires_at_the_instant_that_it_says(mia: User) -> None:
    ends = utcnow() + HOUR
    text = token_of(mia, expires_at=ends)
    token_by_text(text, ends - timedelta(microseconds=1))
    with pytest.raises(BadToken, match="expired at"):
        token_by_text(text, ends)


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({"name": ""}, "name"),
        ({"name": " "}, "name"),
        ({"name": "x" * 101}, "name"),
        ({"name": "a\nb"}, "name"),
        ({"scope": "all"}, "scope"),
        ({"expires_at": utcnow() - HOUR}, "expiresAt"),
    ],
)
def test_what_no_token_can_be_is_refused(mia: User, fields: dict[str, Any], wrong: str) -> None:
    with pytest.raises(InvalidFields) as refusal:
        create_token(mia, TokenRequest(**{"name": "x", "scope": "read", **fields}), mia, utcnow())
    assert list(refusal.value.errors) == [wrong]


def test_a_name_is_free_again_when_its_token_is_revoked(mia: User) -> None:
    asked = TokenRequest("ci", "read")
    first = create_token(mia, asked, mia, utcnow())
    with pytest.raises(Conflict, match="mia has a token named 'ci' already"):
        create_token(mia, asked, mia, utcnow())
    revoke_token(first.token, mia, utcnow())
    create_token(mia, asked, mia, utcnow())


def test_the_database_knows_the_scopes(mia: User) -> None:
    with pytest.raises(IntegrityError, match="token_scope_known"):
        ApiToken.objects.create(name="x", user=mia, digest=b"x", scope="all")


def test_nobody_makes_or_revokes_a_token_of_another(mia: User, root: User) -> None:
    with pytest.raises(Forbidden):
        create_token(root, TokenRequest("x", "read"), mia, utcnow())
    made = create_token(root, TokenRequest("x", "read"), root, utcnow())
    with pytest.raises(Forbidden):
        revoke_token(made.token, mia, utcnow())
    create_token(mia, TokenRequest("x", "read"), root, utcnow())


def test_the_inactive_get_none(mia: User) -> None:
    mia.is_active = False
    with pytest.raises(InvalidFields, match="active users"):
        create_token(mia, TokenRequest("x", "read"), System("tests"), utcnow())


# --- REST ------------------------------------------------------------------------------------------


def test_a_token_is_made_listed_and_revoked_over_rest(mia: User, root: User) -> None:
    client, others = rest(token_of(mia)), token_of(root)
    made = client.post("/api/v1/tokens", {"name": "ci", "scope": "operate"}, format="json")
    assert (made.status_code, made["Cache-Control"]) == (201, "no-store")
    body = made.json()
    assert rest(body["token"]).get("/api/v1/jobs").status_code == 200
    shown = client.get(made["Location"]).json()
    assert shown == {name: value for name, value in body.items() if name != "token"} | {
        "lastUsedAt": shown["lastUsedAt"]
    }
    assert shown["lastUsedAt"] is not None
    assert {token["name"] for token in client.get("/api/v1/tokens").json()["results"]} == {"tests edit", "ci"}
    assert len(rest(others).get("/api/v1/tokens").json()["results"]) == 3
    assert client.delete(made["Location"]).status_code == 204
    assert client.delete(made["Location"]).status_code == 204
    assert rest(body["token"]).get("/api/v1/jobs").status_code == 401
    assert client.get(made["Location"]).json()["revokedAt"] is not None


def test_anothers_tokens_are_not_there(mia: User, root: User) -> None:
    token_of(root)
    foreign = ApiToken.objects.get(user=root)
    client = rest(token_of(mia))
    for method in ("get", "delete"):
        assert getattr(client, method)(f"/api/v1/tokens/{foreign.id}").status_code == 404
    body = {"name": "x", "scope": "read", "user": "root"}
    assert client.post("/api/v1/tokens", body, format="json").status_code == 403
    assert (
        rest(token_of(root, name="other"))
        .post("/api/v1/tokens", {**body, "user": "mia"}, format="json")
        .json()["user"]
        == "mia"
    )


@pytest.mark.parametrize("superuser", [False, True])
def test_a_token_makes_none_that_may_do_more_or_lasts_longer(mia: User, root: User, superuser: bool) -> None:
    owner, ends = root if superuser else mia, utcnow() + HOUR
    client = rest(token_of(owner, "operate", expires_at=ends))

    def make(**fields: Any) -> int:
        asked = {
            "name": f"t{ApiToken.objects.count()}",
            "scope": "read",
            "expiresAt": ends.isoformat(),
            **fields,
        }
        return int(client.post("/api/v1/tokens", asked, format="json").status_code)

    assert [make(scope=scope) for scope in ("read", "operate", "edit")] == [201, 201, 403]
    assert make(expiresAt=(ends + HOUR).isoformat()) == 403
    assert make(expiresAt=None) == 403
    edits = create_token(owner, TokenRequest("edits", "edit"), owner, utcnow()).token
    assert client.delete(f"/api/v1/tokens/{edits.id}").status_code == 403


# --- admin -----------------------------------------------------------------------------------------


def test_a_token_is_made_in_the_admin_where_its_text_is_shown_once(mia: User, root: User) -> None:
    token_of(root)
    browser = Client()
    browser.force_login(mia)
    page = "/admin/access/apitoken/"
    given = {"name": "ci", "scope": "read", "expires_at_0": "", "expires_at_1": "", "user": root.pk}
    answer = browser.post(f"{page}add/", given)
    assert answer.status_code == 200, answer.content
    text = answer.context["text"]
    assert token_by_text(text, utcnow()).user == mia
    assert "no-store" in answer["Cache-Control"]
    for address in (page, f"{page}{ApiToken.objects.get(user=mia).pk}/change/"):
        shown = browser.get(address).content.decode()
        assert "punctual_" in shown and text not in shown
    again = browser.post(f"{page}add/", given)
    assert "already" in again.context["adminform"].form.errors["name"][0]
    chosen = [str(pk) for pk in ApiToken.objects.values_list("pk", flat=True)]
    browser.post(page, {"action": "revoke", "_selected_action": chosen})
    assert set(ApiToken.objects.filter(revoked_at=None).values_list("user__username", flat=True)) == {"root"}


# --- command ---------------------------------------------------------------------------------------


def command(*arguments: str) -> str:
    out = StringIO()
    call_command("tokens", *arguments, stdout=out)
    return out.getvalue().strip()


def test_the_command_makes_lists_and_revokes(mia: User) -> None:
    text = command("create", "ci", "--for", "mia", "--scope", "operate", "--expires", "2100-01-01T00:00:00Z")
    token = token_by_text(text, utcnow())
    assert (token.user, token.scope) == (mia, "operate")
    (shown,) = json.loads(command("list", "--json"))["results"]
    assert (shown["name"], shown["prefix"], shown["expiresAt"]) == (
        "ci",
        token.prefix,
        "2100-01-01T00:00:00Z",
    )
    assert "in force" in command("list", "--user", "mia")
    assert "counts no more" in command("revoke", str(token.id))
    assert "revoked" in command("list")
    with pytest.raises(CommandError, match="--for USER"):
        command("create", "ci")


def test_the_command_acts_with_a_users_rights(mia: User, root: User) -> None:
    with pytest.raises(CommandError, match="There is no user 'root', or you may not"):
        command("create", "x", "--for", "root", "--user", "mia")


# --- the demo, and what was there before ------------------------------------------------------------


def test_the_demo_keeps_its_token_while_it_counts(root: User) -> None:
    text = ensure_token(root, "demo", "", utcnow())
    assert ensure_token(root, "demo", text, utcnow()) == text
    other = ensure_token(root, "demo", "lost", utcnow())
    assert ensure_token(root, "demo", text, utcnow()) not in (text, other)


def test_tokens_of_before_are_carried_over_as_digests(mia: User) -> None:
    key = "0123456789abcdef0123456789abcdef01234567"
    with connection.cursor() as cursor:
        cursor.execute(
            "CREATE TABLE authtoken_token (key varchar(40) PRIMARY KEY, created timestamptz, user_id integer)"
        )
        cursor.execute("INSERT INTO authtoken_token VALUES (%s, now(), %s)", [key, mia.id])
    migration = import_module("access.migrations.0002_carry_tokens_over")
    with connection.schema_editor(atomic=False) as editor:
        migration.carry_over(apps, editor)
    assert "authtoken_token" not in connection.introspection.table_names()
    token = token_by_text(key, utcnow())
    assert (token.user, token.name, token.scope, token.prefix) == (mia, "carried over", "edit", "012345")
