"""The demo: its user and token in the database, its jobs over REST like everybody's."""

from __future__ import annotations

import http.client
import json
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, cast

from scheduler_project.home import write_private
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import PunctualError
from scheduler_project.standalone.claims import ADDRESS
from scheduler_project.standalone.options import Options

FILE = "demo.json"
USER = "admin"
FAILING = frozenset({"flaky-import"})  # the job that is there to fail and to be tried again
SOON = timedelta(minutes=1)


class DemoFailed(PunctualError):
    """The demo could not be set up."""


@dataclass(frozen=True, slots=True)
class Account:
    url: str
    username: str
    password: str
    token: str


def job_bodies(options: Options) -> list[dict[str, Any]]:
    """The demo's jobs as REST bodies."""
    text = (options.examples / "demo_jobs.json").read_text(encoding="utf-8")
    return cast("list[dict[str, Any]]", json.loads(text))


def expected_ends(options: Options) -> dict[str, int | None]:
    """For each job: None where its runs are to end normally, else after how many attempts they fail."""
    return {
        body["name"]: int(body.get("retries", 0)) + 1 if body["name"] in FAILING else None
        for body in job_bodies(options)
    }


def ensure_account(options: Options) -> Account:
    """The demo's superuser, with the password and the token of the first start, also in demo.json."""
    from django.contrib.auth import get_user_model

    from access.tokens import ensure_token

    path = options.folder / FILE
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    password = kept.get("password") or secrets.token_urlsafe(12)
    users = get_user_model().objects
    user, _ = users.get_or_create(
        username=USER, defaults={"is_superuser": True, "is_staff": True, "email": "admin@localhost"}
    )
    if not user.check_password(password):
        user.set_password(password)
        user.save(update_fields=["password"])
    token = ensure_token(user, "demo", kept.get("token", ""), utcnow())
    account = Account(options.url, USER, password, token)
    values = {"url": account.url, "username": USER, "password": password, "token": account.token}
    write_private(path, json.dumps(values, indent=1) + "\n")
    return account


def post_jobs(options: Options, account: Account, begun: datetime) -> list[str]:
    """Make the jobs that are not there; run once what has no run of this start soon. Says what it did."""
    from jobs.models import Job

    api = Api(options.port, account.token)
    done = []
    for body in job_bodies(options):
        same = Job.objects.filter(name=body["name"], owner__name=body["owner"])
        line = f"job {body['name']}: {'there already' if same.exists() else 'made'}"
        if not same.exists():
            _accepted(api.post("/api/v1/jobs", body), body["name"])
        identity = same.get().pk
        if not _comes_by_itself(body, identity, begun):
            _accepted(api.post(f"/api/v1/jobs/{identity}/run", {}), body["name"])
            line += ", one run now"
        done.append(line)
    return done


def _accepted(answer: tuple[int, str], job: str) -> None:
    status, text = answer
    if not 200 <= status < 300:
        short = " ".join(text.split())[:300]
        raise DemoFailed(f"the demo job {job} was refused with status {status}: {short}")


def _comes_by_itself(body: dict[str, Any], job_id: Any, begun: datetime) -> bool:
    from executions.ids import lowest_id
    from executions.models import Execution

    if isinstance(body["schedule"], dict) and "every" in body["schedule"]:
        return True
    due = {"scheduled_for__gte": begun, "scheduled_for__lte": begun + SOON}
    return Execution.objects.filter(job_id=job_id, id__gte=lowest_id(begun), **due).exists()


class Api:
    """The REST interface of this machine; never through a proxy, whatever the environment says."""

    def __init__(self, port: int, token: str) -> None:
        self._port = port
        self._headers = {"Authorization": f"Token {token}", "Content-Type": "application/json"}

    def post(self, path: str, body: dict[str, Any]) -> tuple[int, str]:
        """Status and text of the answer."""
        connection = http.client.HTTPConnection(ADDRESS, self._port, timeout=30)
        try:
            connection.request("POST", path, json.dumps(body), self._headers)
            answer = connection.getresponse()
            return answer.status, answer.read().decode(errors="replace")
        finally:
            connection.close()
