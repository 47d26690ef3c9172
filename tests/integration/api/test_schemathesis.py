"""What the schema says is what the API does: schemathesis asks by the schema, and finds nothing.

All its checks run: no 5xx; only documented statuses, types, headers and shapes; what breaks the schema is
refused, what keeps to it is accepted. Left out, and why:

- Of "what keeps to it is accepted": refusals for what JSON schema cannot say (``BEYOND_THE_SCHEMA``), most
  of them rules of several fields together.
- Its coverage phase: it draws long texts by their patterns, and takes minutes where the rest takes seconds.
- ``follow=true``: an answer that ends when the run does; tests/integration/api/test_log_stream.py has it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import Any

import pytest
import schemathesis
from django.contrib.auth.models import Group, User
from django.core.signals import request_finished, request_started
from django.db import close_old_connections, transaction
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from rest_framework.test import APIClient
from schemathesis.checks import load_all_checks
from schemathesis.config import SchemathesisConfig
from schemathesis.specs.openapi.checks import positive_data_acceptance

from scheduler_project.documentation import schema
from scheduler_project.wsgi import application
from tests.integration.api.conftest import create

FORMATS = {
    "template": ["true", "echo {{ ds }}", "python etl.py --day '{{ ds }}'", "select 1"],
    "length-of-time": ["1s", "90s", "5m", "1h30m", "1250ms", "20"],
    "cron": ["0 2 * * *", "*/5 * * * * *", "@daily", "0 0 L * FRI"],
    "time-zone": ["UTC", "Europe/Berlin"],
    "image": ["", "python:3.12-slim", "ghcr.io/acme/etl:1"],
    "team": ["data-engineering", "marketing"],
    "pool": ["etl"],
    "username": ["ada", "ben@example.org", "c.d-e+f_1"],
    "e-mail": ["", "ada@example.org"],
    "group": ["marketing", "viewers", "editors"],
    "new-group": ["sales", "finance"],
    "permission": ["jobs.add_pool", "auth.view_user"],
    "password": ["correct-horse-battery-9", "tr0ub4dor-and-3-more"],
    "task": ["report"],
    "container-path": ["/data", "/srv/app"],
    "size": ["8Mi", "1Gi", "6291456"],
    "cpus": ["0.5", "500m", "2"],
    "cursor": ["AAAAAAAAAAAAAAAAAAAAAA"],
    "name-cursor": ["ZXRs"],
    "etags": ["*", '"5f"', '"5f", W/"60"'],
    "date-time": ["1970-01-01T00:00:00Z", "2026-12-24T18:00:00.5Z", "2999-12-31T23:59:59+01:00"],
}
BEYOND_THE_SCHEMA = re.compile(
    r"not later than|later than end|never fires|does not fire after now|cron expression|too long ago"
    r"|an hour in the past|has passed|is in the future: |place in a list of another order"
    r"|It (goes only|is required) with"
    r"|is too short|is longer than|is not between"  # lengths and sizes are texts with units
    r"|exactly one of|of no use|target of two volumes|more than the limit|With the operator|except with"
    r"|for the effect NoExecute only|in one of them only"
    r"|needs an image|may not be blank|would both be|keeps its (name|team)|by itself: leave it out"
    r"|Not allowed here|does not allow|is not allowed here|may not have"  # the deployment's policy
    r"|is of type \w+: leave this out|There is no (team|pool|task|group|permission)"
    r"|at most 1000|more than 3660d from now|It is for backoff"
    r"|\.0 is not a (whole number|length of time|size)"  # JSON schema takes 340.0 for 340
)
for name, values in FORMATS.items():
    schemathesis.openapi.format(name, st.sampled_from(values))
load_all_checks()


def within_the_test(environ: dict[str, Any], start_response: Callable[..., Any]) -> list[bytes]:
    """The application, but for that a request closes the connection that has the test's transaction."""
    signals = (request_started, request_finished)
    for signal in signals:
        signal.disconnect(close_old_connections)
    answer = application(environ, start_response)
    body = b"".join(answer)
    answer.close()
    for signal in signals:
        signal.connect(close_old_connections)
    return [body]


SCHEMA = schemathesis.openapi.from_dict(
    schema(),
    config=SchemathesisConfig.from_dict(
        {
            "seed": 5,
            "generation": {"deterministic": True, "database": "none"},
            "phases": {"coverage": {"enabled": False}},
        }
    ),
)
SCHEMA.app = within_the_test


@pytest.fixture
def known(root: APIClient, member: APIClient, outsider: APIClient, settings: Any) -> dict[str, str]:
    """What the names in addresses stand for where there is something, and the header of a superuser."""
    settings.PUNCTUAL_API_RATE = 0
    made = create(member)
    root.post("/api/v1/pools", {"name": "etl", "slots": 3}, format="json")
    task = {"name": "report", "type": "Script", "command": "true"}
    return {
        "task_id": root.post("/api/v1/tasks", task, format="json").json()["id"],
        "job_id": made["jobId"],
        "execution_id": made["firstExecutionId"],
        "name": "etl",
        "user_id": str(User.objects.get(username="mia").pk),
        "group_id": str(Group.objects.get(name="marketing").pk),
        "Authorization": root._credentials["HTTP_AUTHORIZATION"],  # type: ignore[attr-defined]
    }


@SCHEMA.parametrize()
@settings(max_examples=12, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
def test_the_api_does_what_its_schema_says(case: Any, known: dict[str, str]) -> None:
    if case.meta.generation.mode.is_positive:
        for name in case.path_parameters or {}:
            case.path_parameters[name] = known.get(name, case.path_parameters[name])
    if str((case.query or {}).get("follow", "")).lower() == "true":
        del case.query["follow"]
    headers = {"Authorization": known["Authorization"]}
    own = transaction.atomic()
    own._from_testcase = True  # type: ignore[attr-defined]  # within it a durable transaction may begin, as within the test's
    with own:
        answer = case.call(headers=headers)
        transaction.set_rollback(True)
    left_out = [positive_data_acceptance] if beyond_the_schema(answer) else []
    case.validate_response(answer, excluded_checks=left_out, headers=headers)


def beyond_the_schema(answer: Any) -> bool:
    """Whether all that it complains of is what no schema says."""
    if answer.status_code != 400:
        return bool(answer.status_code == 412)  # another has changed it, says a tag of a stranger
    complaints = json.loads(answer.content).get("errors", {})
    return bool(complaints) and all(
        BEYOND_THE_SCHEMA.search(" ".join(texts)) for texts in complaints.values()
    )
