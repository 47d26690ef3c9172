"""REST: what a run would be."""

from __future__ import annotations

import pytest
from pytest_django import Settings
from rest_framework.test import APIClient

from executions.models import Execution
from executions.run_tokens import VARIABLE
from tests.integration.api.conftest import create

pytestmark = pytest.mark.django_db


def test_it_is_rendered_and_nothing_is_made(root: APIClient, settings: Settings) -> None:
    settings.PUNCTUAL_ALLOW_SECRETS = ["*"]
    made = create(
        root,
        type="Script",
        command="load {{ ds }} {{ params.region }}",
        parameters={"region": "EU"},
        container={"secretEnv": {"PGPASSWORD": "team/warehouse"}},
    )
    before = Execution.objects.count()
    body = {"at": "2031-05-06T02:00:00Z", "parameters": {"region": "US"}}
    found = root.post(f"/api/v1/jobs/{made['jobId']}/render", body, format="json").json()
    assert found["command"] == ["sh", "-c", "load 2031-05-06 US"]
    assert (found["env"]["PARAM_REGION"], found["secretEnv"]) == ("US", {"PGPASSWORD": "team/warehouse"})
    assert VARIABLE not in found["env"], "who looks could end the run of that time"
    assert (found["plannedFor"], found["problem"]) == ("2031-05-06T02:00:00Z", None)
    assert Execution.objects.count() == before


def test_what_could_not_start_says_why(root: APIClient) -> None:
    made = create(root, command="echo {{ nobody }}")
    found = root.post(f"/api/v1/jobs/{made['jobId']}/render", {}, format="json").json()
    assert "nobody" in found["problem"]
    assert found["command"] == []


def test_it_is_for_the_team(root: APIClient, outsider: APIClient, member: APIClient) -> None:
    address = f"/api/v1/jobs/{create(root)['jobId']}/render"
    assert outsider.post(address, {}, format="json").status_code == 404
    assert member.post(address, {}, format="json").status_code == 200
    assert member.post(address, {"at": "soon"}, format="json").status_code == 400
