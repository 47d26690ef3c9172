"""Whatever a request carries, the answer is a page or a refusal, never a fault of the server."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from urllib.parse import quote_from_bytes

import pytest
from django.contrib import admin
from django.contrib.auth.models import Group, User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from executions.store import Store
from jobs.definitions import read_definition
from jobs.models import Task
from jobs.services import create_job
from scheduler_project.kernel.clock import utcnow

pytestmark = pytest.mark.django_db

NIL = "00000000-0000-0000-0000-000000000000"
VALUES: list[bytes] = [
    b"-1",
    b"9" * 40,
    b"1e999",
    b"a\0b",
    b"\xff\xfe",
    b"\xed\xa0\x80",  # half of a surrogate pair
    "\N{ARABIC-INDIC DIGIT THREE}".encode(),
    b"9999-12-31T23:59:59-23:59",
    NIL.encode(),
    b"' OR 1=1 --",
    b"x" * 20_000,
]
LISTS = ["p", "e", "o", "q", "all", "_popup", "_to_field", "_facets", "before", "state", "due", "team", "job"]
LOOKUPS = [
    ("", b"9" * 40),
    ("", b"a\0b"),
    ("__in", b"1,x"),
    ("__year", b"99999"),
    ("__isnull", b"x"),
    ("__regex", b"("),
]


@pytest.fixture
def root(db: None, store: Store) -> Client:
    team = Group.objects.create(name="data-engineering")
    user = User.objects.create_user("root", is_staff=True, is_superuser=True, password="x")
    body = {"name": "a", "type": "Script", "command": "true", "schedule": "now", "owner": team.name}
    create_job(read_definition(body), user, utcnow())
    Task.objects.create(name="t", type="Script", command="true")
    browser = Client(raise_request_exception=False)
    browser.force_login(user)
    return browser


def fields_of(model: Any) -> Iterator[str]:
    for field in model._meta.get_fields():
        if field.concrete:
            yield field.name
            if field.is_relation:
                yield from (f"{field.name}__id", f"{field.name}__name")


def list_page(model: Any) -> str:
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")


def queries(names: list[str], values: list[bytes]) -> Iterator[str]:
    for name in names:
        for value in values:
            yield f"{name}={quote_from_bytes(value)}"


def fails(ask: Callable[..., Any], address: str, *body: str) -> bool:
    """Asked in a transaction of its own, as each request has: PostgreSQL ends the one that it refused in."""
    kind = {"content_type": "application/x-www-form-urlencoded"} if body else {}
    with transaction.atomic():
        answer = ask(address, *body, **kind)
        transaction.set_rollback(True)
    return bool(answer.status_code >= 500)


def faults(browser: Client, addresses: list[str]) -> list[str]:
    return [address[:120] for address in addresses if fails(browser.get, address)]


admin.autodiscover()
MODELS = sorted(admin.site._registry, key=lambda model: model._meta.label)


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_no_query_makes_a_list_of_the_admin_fail(root: Client, model: Any) -> None:
    page = list_page(model)
    lookups = [f"{n}{end}={quote_from_bytes(value)}" for n in fields_of(model) for end, value in LOOKUPS]
    asked = [*queries(LISTS, VALUES[:6]), *lookups]
    assert faults(root, [f"{page}?{query}" for query in asked]) == []


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model._meta.label)
def test_no_id_makes_a_page_or_an_action_of_the_admin_fail(root: Client, model: Any) -> None:
    page = list_page(model)
    views = ("change", "delete", "history", "run", "cancel")
    texts = [quote_from_bytes(value, safe="") for value in VALUES]
    assert faults(root, [f"{page}{text}/{view}/" for text in texts for view in views]) == []
    for action in ("delete_selected", "run_now", "nonsense"):
        bodies = [f"action={action}&_selected_action={text}&index=0" for text in texts]
        assert [body[:80] for body in bodies if fails(root.post, page, body)] == []


FORMS = ["jobs_job", "jobs_task", "auth_user", "auth_group", "access_apitoken"]


@pytest.mark.parametrize("form", FORMS)
def test_no_form_of_the_admin_fails_on_any_field(root: Client, form: str) -> None:
    page = reverse(f"admin:{form}_add")
    names = list(root.get(page).context["adminform"].form.fields)
    wrong = []
    for name in names:
        for value in VALUES:
            body = "&".join(
                f"{other}={quote_from_bytes(value if other == name else b'1')}" for other in names
            )
            wrong += [(name, value[:20])] if fails(root.post, page, body) else []
    assert wrong == []


@pytest.mark.parametrize(
    "path", ["jobs", "executions", f"jobs/{NIL}", f"executions/{NIL}/events", f"executions/{NIL}/logs"]
)
def test_no_query_makes_rest_fail(root: Client, path: str) -> None:
    names = ["limit", "cursor", "owner", "name", "job", "status", "from", "to", "attempt", "nonsense"]
    assert faults(root, [f"/api/v1/{path}?{query}" for query in queries(names, VALUES)]) == []


def test_no_id_makes_rest_fail(root: Client) -> None:
    ids = [quote_from_bytes(value, safe="") for value in VALUES]
    parts = ["jobs/{}", "executions/{}", "executions/{}/events", "executions/{}/logs"]
    assert faults(root, [f"/api/v1/{part.format(value)}" for part in parts for value in ids]) == []
