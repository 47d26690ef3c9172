"""Whether this web process works, and whether it can serve: ``/healthz/live`` and ``/healthz/ready``.

Asked without a user, by an address that is in nobody's ALLOWED_HOSTS, over HTTP where all else is redirected:
so it is answered before any of that is looked at, and tells no name, address or version.

Ready means that requests can be served, and that takes PostgreSQL and its migrations. Redis and the broker
are looked at to be told about: a web server that is taken out of service because they are away could not
accept the jobs that start when they are back.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import cache

from django.db import connection, connections
from django.db.migrations.loader import MigrationLoader
from django.db.migrations.recorder import MigrationRecorder
from django.db.utils import Error as DatabaseError
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.utils.deprecation import MiddlewareMixin

from executions.bus.connection import BusUnavailable
from executions.bus.depths import queue_facts
from executions.bus.topology import RECORDER
from executions.store import StoreUnavailable, hasty_store
from scheduler_project.kernel.clock import monotonic

WITHIN_S = 2.0
KEPT_S = 1.0
OK = "ok"
NO_DATABASE = "PostgreSQL does not answer"
UNMIGRATED = "the database lacks migrations: run 'manage.py migrate'"
NO_REDIS = "Redis does not answer; jobs are accepted, and their runs start when it is back"
NO_BROKER = "the broker does not answer; jobs are accepted, and their runs start when it is back"


class Look:
    """What ``ask`` says of a part, at most KEPT_S old; ``silent`` where it has not answered within WITHIN_S.

    However many want to know, one thread asks: one that hangs is not joined by others.
    """

    def __init__(self, ask: Callable[[], str], silent: str) -> None:
        self._ask = ask
        self._silent = silent
        self._lock = threading.Lock()
        self._done = threading.Event()
        self._began_at = 0.0
        self._said: str | None = None

    def begin(self) -> None:
        """Ask, unless somebody does or has just done so."""
        with self._lock:
            if self._began_at and not self._done.is_set():
                return
            if monotonic() - self._began_at > KEPT_S:
                self._began_at = monotonic()
                self._done.clear()
                threading.Thread(target=self._run, name="health", daemon=True).start()

    def answer(self) -> str:
        in_time = self._done.wait(max(0.0, self._began_at + WITHIN_S - monotonic()))
        return self._said if in_time and self._said is not None else self._silent

    def _run(self) -> None:
        self._said = None
        try:
            self._said = self._ask()
        finally:
            self._done.set()


def alive(_request: HttpRequest) -> HttpResponse:
    """This process answers; it asks no other part."""
    return HttpResponse("ok\n", content_type="text/plain")


def ready(_request: HttpRequest) -> HttpResponse:
    """200 or 503; the parts in words, within WITHIN_S."""
    looks = _looks()
    for look in looks.values():
        look.begin()
    said = {part: look.answer() for part, look in looks.items()}
    is_ready = said["database"] == OK
    return JsonResponse({"ready": is_ready, **said}, status=200 if is_ready else 503)


_ANSWERS: Mapping[str, Callable[[HttpRequest], HttpResponse]] = {
    "/healthz": alive,
    "/healthz/live": alive,
    "/healthz/ready": ready,
}


class Health(MiddlewareMixin):
    def process_request(self, request: HttpRequest) -> HttpResponse | None:
        if (answer := _ANSWERS.get(request.path_info)) is None:
            return None
        response = answer(request)
        response["Cache-Control"] = "no-store"
        return response


@cache
def _looks() -> dict[str, Look]:
    return {
        "database": Look(_database, NO_DATABASE),
        "redis": Look(_redis, NO_REDIS),
        "broker": Look(_broker, NO_BROKER),
    }


def _database() -> str:
    try:
        applied = MigrationRecorder(connection).applied_migrations()
    except DatabaseError:
        return NO_DATABASE
    finally:
        connections.close_all()
    return OK if _last_migrations() <= applied.keys() else UNMIGRATED


@cache
def _last_migrations() -> frozenset[tuple[str, str]]:
    """The last of each app, as the files say."""
    return frozenset(MigrationLoader(None, ignore_no_migrations=True).graph.leaf_nodes())


def _redis() -> str:
    try:
        hasty_store().now_ms()
    except StoreUnavailable:
        return NO_REDIS
    return OK


def _broker() -> str:
    try:
        queue_facts([RECORDER])
    except BusUnavailable:
        return NO_BROKER
    return OK
