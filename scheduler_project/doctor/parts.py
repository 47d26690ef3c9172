"""The parts that are looked at, in the order in which an operator mends them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

from scheduler_project.checks import missing_parts
from scheduler_project.doctor.broker import check_broker
from scheduler_project.doctor.clocks import check_clocks
from scheduler_project.doctor.database import check_database
from scheduler_project.doctor.findings import Check, Finding, unknown
from scheduler_project.doctor.places import check_logs, check_settings
from scheduler_project.doctor.redis_server import check_redis
from scheduler_project.doctor.runtime import check_runtime
from scheduler_project.doctor.services import check_beats, check_workers


def _where_addressed(check: Callable[[], Iterator[Finding]], *addresses: str) -> Iterator[Finding]:
    """What the check says, unless there is no address to look at; the settings' findings say what to do."""
    missing = missing_parts(addresses)
    if missing:
        yield unknown("address", " ".join(str(message.msg) for message in missing))
        return
    yield from check()


PARTS: Mapping[str, Check] = {
    "settings": check_settings,
    "database": partial(_where_addressed, check_database, "DATABASE_URL"),
    "redis": partial(_where_addressed, check_redis, "REDIS_URL"),
    "broker": partial(_where_addressed, check_broker, "BROKER_URL"),
    "clocks": partial(_where_addressed, check_clocks, "DATABASE_URL", "REDIS_URL"),
    "beats": partial(_where_addressed, check_beats, "REDIS_URL"),
    "workers": partial(_where_addressed, check_workers, "REDIS_URL"),
    "runtime": partial(_where_addressed, check_runtime, "REDIS_URL"),
    "logs": check_logs,
}
