"""PostgreSQL: reachable, of a version that will do, writable, migrated, with its partitions, vacuumed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

from django.apps import apps
from django.conf import settings
from django.db import connection
from django.db.migrations.exceptions import MigrationSchemaMissing
from django.db.migrations.executor import MigrationExecutor
from django.db.utils import Error as DatabaseError

from executions.partitions import EVENTS, EXECUTIONS, day_of, partition_name, partitions_of
from scheduler_project.doctor.findings import Finding, away, failure, ok, warning
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.resources import read_queries
from scheduler_project.operating.times import shown_seconds
from scheduler_project.operating.words import counted
from scheduler_project.startup import unreachable

QUERIES = read_queries("scheduler_project.doctor.sql", "database.sql")
LEAST_VERSION, TRIED_VERSION = 15, 18
CROWDED = 0.8
LONG_TRANSACTION_S = 300
MIGRATE = "Run 'manage.py migrate'."
START_MAINTENANCE = (
    "Start a maintenance worker ('celery -A scheduler_project worker -Q maintenance'), and call it at once:"
    " 'celery -A scheduler_project call maintenance.partitions'."
)
OURS = ("jobs", "executions", "access")


def check_database() -> Iterator[Finding]:
    try:
        (server,) = _rows("server")
    except DatabaseError as error:
        yield away(
            unreachable(error) or f"It refuses: {error}",
            "Start PostgreSQL, or set DATABASE_URL to where it is; runs that wait are not lost meanwhile.",
        )
        return
    yield from _on_server(server)
    waiting = _unapplied()
    if waiting:
        names = ", ".join(waiting[:5]) + (", …" if len(waiting) > 5 else "")
        yield failure("migrations", f"{counted(len(waiting), 'migration')} to apply: {names}.", MIGRATE)
        return
    yield ok("migrations", "All are applied.")
    yield from on_rights(server["role"])
    yield from on_partitions(utcnow())
    yield from _on_vacuum(server)
    yield from _on_jobs()


def _on_server(server: dict[str, Any]) -> Iterator[Finding]:
    major = server["version_number"] // 10_000
    told = f"PostgreSQL {server['version']}, {server['bytes'] / 2**20:.0f} MiB."
    if major < LEAST_VERSION:
        yield failure("version", told, f"Upgrade it: {LEAST_VERSION} is the least that is supported.")
    elif major > TRIED_VERSION:
        yield warning("version", told, f"No version above {TRIED_VERSION} has been tried: watch it.")
    else:
        yield ok("version", told)
    if server["standby"] or server["read_only"]:
        what = "a standby" if server["standby"] else "read-only"
        yield failure(
            "writable", f"It is {what}.", "Let DATABASE_URL name the primary: target_session_attrs=primary."
        )
    else:
        yield ok("writable", "It takes writes.")
    used, most = server["connections"], server["most_connections"]
    told = f"{used} of {most} connections are taken."
    if used > CROWDED * most:
        yield warning("connections", told, "Raise max_connections, or put a pooler before it.")
    else:
        yield ok("connections", told)


def _unapplied() -> list[str]:
    try:
        executor = MigrationExecutor(connection)
        plan = executor.migration_plan(executor.loader.graph.leaf_nodes())
    except MigrationSchemaMissing as error:
        return [str(error)]
    return [f"{migration.app_label}.{migration.name}" for migration, _ in plan]


def on_rights(role: str) -> Iterator[Finding]:
    tables = [model._meta.db_table for app in OURS for model in apps.get_app_config(app).get_models()]
    lacking = {row["table"]: row["lacking"] for row in _rows("rights", tables) if row["lacking"]}
    if not lacking:
        yield ok("rights", f"The role {role!r} has what it needs.")
        return
    told = "; ".join(f"{', '.join(rights)} on {table}" for table, rights in lacking.items())
    yield failure(
        "rights",
        f"The role {role!r} lacks {told}.",
        f'Grant them, or let it own the tables: ALTER TABLE … OWNER TO "{role}".',
    )


def on_partitions(now: datetime) -> Iterator[Finding]:
    """Those of today and PUNCTUAL_PARTITIONS_AHEAD days more; the last may be missing for an hour."""
    today, ahead = now.date(), settings.PUNCTUAL_PARTITIONS_AHEAD
    there = {*partitions_of(EXECUTIONS), *partitions_of(EVENTS)}
    days = [today + timedelta(days=number) for number in range(ahead + 1)]
    missing = [day for day in days if not _names(day) <= there]
    due = [day for day in missing if day <= today + timedelta(days=max(0, ahead - 1))]
    if due:
        told = f"Partitions are missing from {due[0]} on ({counted(len(due), 'day')} of {ahead} ahead)"
        told += ": today's rows go to the default one." if due[0] == today else "."
        say = failure if due[0] <= today + timedelta(days=1) else warning
        yield say("partitions", told, START_MAINTENANCE)
    else:
        yield ok("partitions", f"They are there up to {max(set(days) - set(missing))}.")
    oldest = min((day_of(name) for name in there), default=today)
    kept_from = (now - settings.PUNCTUAL_RETENTION).date()
    if oldest < kept_from - timedelta(days=1):
        told = f"There are days from {oldest} on, and PUNCTUAL_RETENTION keeps those from {kept_from} on."
        todo = f"{START_MAINTENANCE} A day that has a run that has not ended stays: end those runs."
        yield warning("retention", told, todo)
    else:
        yield ok("retention", f"Nothing is older than {oldest}.")


def _names(day: Any) -> set[str]:
    return {partition_name(EXECUTIONS, day), partition_name(EVENTS, day)}


def _on_vacuum(server: dict[str, Any]) -> Iterator[Finding]:
    bloated = _rows("bloated")
    if not server["autovacuum"]:
        yield failure("vacuum", "Autovacuum is off.", "Turn it on: ALTER SYSTEM SET autovacuum = on.")
    elif bloated:
        told = ", ".join(f"{row['table']} ({row['dead']} dead, {row['alive']} alive)" for row in bloated)
        todo = "End what holds an old snapshot (see the next line), then VACUUM these tables."
        yield warning("vacuum", f"It does not keep up: {told}.", todo)
    else:
        yield ok("vacuum", "Autovacuum keeps up.")
    oldest = next(iter(_rows("oldest_transaction")), None)
    if oldest and oldest["seconds"] > LONG_TRANSACTION_S:
        who = f"{oldest['application'] or 'somebody'} (pid {oldest['pid']}, {oldest['state']})"
        told = f"A transaction of {who} is {shown_seconds(float(oldest['seconds']))} old."
        todo = f"Nothing is vacuumed meanwhile: SELECT pg_terminate_backend({oldest['pid']})."
        yield warning("transactions", told, todo)
    else:
        yield ok("transactions", "None is older than five minutes.")


def _on_jobs() -> Iterator[Finding]:
    (found,) = _rows("unsettled")
    if found["problems"]:
        told = f"{counted(found['problems'], 'job')} cannot be planned as they are."
        yield warning("jobs", told, "'manage.py jobs list' marks them, 'manage.py jobs show JOB' says why.")
    else:
        yield ok("jobs", "No job has a problem.")


def _rows(name: str, *parameters: Any) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute(QUERIES[name], list(parameters) or None)
        names = [column.name for column in cursor.description or ()]
        return [dict(zip(names, row, strict=True)) for row in cursor.fetchall()]
