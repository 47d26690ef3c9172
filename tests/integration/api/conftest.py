from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from django.contrib.auth.models import Group, User
from rest_framework.test import APIClient

from executions.store import Store
from tests.example_body import BODY
from tests.tokens import token_of

ClientOf = Callable[..., APIClient]


@pytest.fixture
def client_of(db: None, store: Store) -> ClientOf:
    """A client with the token of a user of these teams, which are made."""

    def make(name: str, *teams: str, **fields: Any) -> APIClient:
        user = User.objects.create_user(name, **fields)
        user.groups.set([Group.objects.get_or_create(name=team)[0] for team in teams])
        client = APIClient()
        client.credentials(HTTP_AUTHORIZATION=f"Bearer {token_of(user)}")
        return client

    return make


@pytest.fixture
def root(client_of: ClientOf) -> APIClient:
    return client_of("root", is_superuser=True)


@pytest.fixture
def member(client_of: ClientOf) -> APIClient:
    return client_of("mia", "data-engineering")


@pytest.fixture
def outsider(client_of: ClientOf) -> APIClient:
    return client_of("otto", "marketing")


@pytest.fixture
def anonymous(db: None) -> APIClient:
    return APIClient()


def create(client: APIClient, **fields: Any) -> dict[str, Any]:
    """Create a job; the answer's body."""
    answer = client.post("/api/v1/jobs", {**BODY, **fields}, format="json")
    assert answer.status_code == 201, answer.content
    body: dict[str, Any] = answer.json()
    return body


def problem_of(answer: Any, status: int) -> dict[str, Any]:
    """The problem document of an answer that is one."""
    assert answer.status_code == status, answer.content
    assert answer["Content-Type"] == "application/problem+json"
    body: dict[str, Any] = answer.json()
    assert body["type"] == "about:blank"
    assert body["status"] == status
    assert body["title"]
    return body
