"""Partitions by day of due time: made ahead, filled from the default one, dropped when they are old.

1. For each day from today to ``ahead`` days from now there is a partition of both tables.
2. A row due later than that lies in the default partition. When its day gets a partition,
   all rows of the default partition are put back through the parent: the old default is
   detached, a new one attached, the rows inserted, the old one dropped. No single event is
   updated or deleted, which the database would refuse.
3. Retention is DROP TABLE, events first; a day that still has a run that has not ended stays.

All of it is idempotent, and one transaction for each table; an advisory lock keeps two
maintenance workers from doing it at once.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import UTC, date, datetime, time, timedelta

from django.db import connection, transaction
from psycopg import sql

from executions.ids import lowest_id
from executions.queries import PARTITIONS

EXECUTIONS = "executions_execution"
EVENTS = "executions_executionevent"
_KEYS = {EXECUTIONS: "id", EVENTS: "execution_id"}
_STORAGE = {EXECUTIONS: "WITH (fillfactor = 70)", EVENTS: ""}
_LOCK = 0x50554E43  # any number, the same in all processes


@dataclass
class Maintained:
    """What one round of maintenance did: names of partitions."""

    created: list[str] = field(default_factory=list)
    dropped: list[str] = field(default_factory=list)
    kept: list[str] = field(default_factory=list)  # old enough to go, but with runs that have not ended


def partition_name(table: str, day: date) -> str:
    return f"{table}_p{day:%Y%m%d}"


def day_of(partition: str) -> date:
    """The day of a partition, from its name."""
    return datetime.strptime(partition[-8:], "%Y%m%d").replace(tzinfo=UTC).date()


def maintain(now: datetime, *, ahead: int, retention: timedelta) -> Maintained:
    """Make the partitions of today and ``ahead`` days more; drop those older than ``retention``."""
    done = Maintained()
    today = now.astimezone(UTC).date()
    for table in (EXECUTIONS, EVENTS):
        with transaction.atomic():
            _take_turn()
            done.created += _extend(table, today, ahead)
    _drop_old(done, (now - retention).astimezone(UTC).date())
    return done


def _take_turn() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SET LOCAL lock_timeout = '10s'")
        cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])


def partitions_of(table: str) -> list[str]:
    with connection.cursor() as cursor:
        cursor.execute(PARTITIONS["list_partitions"], [table, f"{table}_default"])
        return [row[0] for row in cursor.fetchall()]


def _extend(table: str, today: date, ahead: int) -> list[str]:
    """Make what is missing for the days ahead, and for earlier days that have rows in the default."""
    there = set(partitions_of(table))
    until = today + timedelta(days=ahead + 1)
    strays = _stray_days(table, until)
    wanted = {today + timedelta(days=n) for n in range(ahead + 1)} | set(strays)
    missing = sorted(day for day in wanted if partition_name(table, day) not in there)
    if strays:
        _set_default_aside(table)
    for day in missing:
        _execute(
            "CREATE TABLE {name} PARTITION OF {table} FOR VALUES FROM ({low}) TO ({high}) " + _STORAGE[table],
            name=sql.Identifier(partition_name(table, day)),
            table=sql.Identifier(table),
            low=sql.Literal(_bound(day)),
            high=sql.Literal(_bound(day + timedelta(days=1))),
        )
    if strays:
        _refill_from_aside(table)
    return [partition_name(table, day) for day in missing]


def _stray_days(table: str, until: date) -> list[date]:
    query = sql.SQL(PARTITIONS["strays"]).format(
        column=sql.Identifier(_KEYS[table]), default=sql.Identifier(f"{table}_default")
    )
    with connection.cursor() as cursor:
        cursor.execute(query, [_bound(until)])
        return [row[0] for row in cursor.fetchall()]


def _set_default_aside(table: str) -> None:
    default, aside = sql.Identifier(f"{table}_default"), sql.Identifier(f"{table}_aside")
    names = {"table": sql.Identifier(table), "default": default, "aside": aside}
    _execute("ALTER TABLE {table} DETACH PARTITION {default}", **names)
    _execute("ALTER TABLE {default} RENAME TO {aside}", **names)


def _refill_from_aside(table: str) -> None:
    names = {
        "table": sql.Identifier(table),
        "default": sql.Identifier(f"{table}_default"),
        "aside": sql.Identifier(f"{table}_aside"),
    }
    _execute("CREATE TABLE {default} PARTITION OF {table} DEFAULT " + _STORAGE[table], **names)
    _execute("INSERT INTO {table} SELECT * FROM {aside}", **names)
    _execute("DROP TABLE {aside}", **names)


def _drop_old(done: Maintained, oldest_day: date) -> None:
    """Drop the days before ``oldest_day``, events first, so that no event outlives its execution unseen."""
    for name in _days():
        if name >= partition_name(EXECUTIONS, oldest_day):
            continue
        with transaction.atomic():
            _take_turn()
            there = {*partitions_of(EXECUTIONS), *partitions_of(EVENTS)}  # another may have been faster
            if name in there and _has_unfinished(name):
                done.kept.append(name)
                continue
            for victim in (name.replace(EXECUTIONS, EVENTS), name):
                if victim in there:
                    _execute("DROP TABLE {name}", name=sql.Identifier(victim))
                    done.dropped.append(victim)


def _days() -> list[str]:
    """The partitions of executions, and what those of events without one would be called, by time."""
    events = {name.replace(EVENTS, EXECUTIONS) for name in partitions_of(EVENTS)}
    return sorted(events.union(partitions_of(EXECUTIONS)))


def _has_unfinished(partition: str) -> bool:
    query = sql.SQL(PARTITIONS["unfinished"]).format(partition=sql.Identifier(partition))
    with connection.cursor() as cursor:
        cursor.execute(query)
        return bool(cursor.fetchone()[0])


def _bound(day: date) -> str:
    return str(lowest_id(datetime.combine(day, time(), UTC)))


def _execute(text: str, **names: sql.Composable) -> None:
    with connection.cursor() as cursor:
        cursor.execute(sql.SQL(text).format(**names))
