"""Lists on a big table: pages come from indexes, never from a scan of what is there."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID, uuid4

import pytest
from django.db import connection
from django.db.models import QuerySet
from django.test.utils import CaptureQueriesContext
from rest_framework.test import APIClient

from executions import pages
from executions.ids import execution_id, lowest_id
from executions.listing import Selection, listed, selected
from executions.pages import NEWEST, OLDEST, Order, first_ids
from executions.partitions import maintain
from executions.states import State, Trigger
from jobs.models import Job
from tests.integration.api.conftest import create

pytestmark = pytest.mark.django_db

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)
DAYS, ROWS_A_DAY, TEAMS, JOBS = 5, 4000, 200, 100
FILL = """
INSERT INTO executions_execution
    (id, job_id, spec_id, owner_id, shard, trigger, scheduled_for, state, finished_at, check_at)
SELECT r.id, r.job_id, %s, r.owner_id, 0, 'schedule', r.due, r.state,
    CASE WHEN r.state <> 'Waiting' THEN r.due END, CASE WHEN r.state = 'Waiting' THEN r.due END
FROM unnest(%s::uuid[], %s::uuid[], %s::integer[], %s::timestamptz[], %s::text[])
    AS r(id, job_id, owner_id, due, state)
"""


@pytest.fixture
def many(root: APIClient) -> Job:
    """Twenty thousand runs over five days and their partitions; the job that has a few of them."""
    for day in range(DAYS):
        maintain(NOON + timedelta(days=day), ahead=0, retention=timedelta(days=300_000))
    job = Job.objects.get(id=create(root)["jobId"])
    jobs = [job.id, *(uuid4() for _ in range(JOBS - 1))]
    rows = []
    for number in range(DAYS * ROWS_A_DAY):
        due = NOON + timedelta(days=number // ROWS_A_DAY, seconds=number % ROWS_A_DAY)
        identity = execution_id(jobs[number % JOBS], due, Trigger.SCHEDULE, 0)
        state = State.WAITING if number % 1000 == 0 else State.COMPLETED_NORMALLY
        rows.append((identity, jobs[number % JOBS], 1000 + number % TEAMS, due, str(state)))
    with connection.cursor() as cursor:
        cursor.execute(FILL, [job.spec_id, *(list(column) for column in zip(*rows, strict=True))])
        cursor.execute("ANALYZE executions_execution")
    return job


def nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for part in plan.get("Plans", ()):
        yield from nodes(part)


def rows_read(query: QuerySet[Any, Any]) -> int:
    """The rows that the scans of the plan really read; no whole partition that has rows may be scanned."""
    (answer,) = json.loads(query.explain(format="JSON", analyze=True))
    total = 0
    for node in nodes(answer["Plan"]):
        if "Relation Name" in node:
            read = (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
            assert node["Node Type"] != "Seq Scan" or read < 50, node
            total += read
    return int(total)


def page(selection: Selection, before: UUID | None = None) -> QuerySet[Any, Any]:
    rows = selected(selection)
    teams = selection.teams
    return first_ids(
        [rows] if teams is None else [rows.filter(owner_id=team) for team in teams], before, limit=50
    )


def test_a_page_of_everything_reads_about_a_page(many: Job) -> None:
    assert rows_read(page(Selection())) < 100
    deep = lowest_id(NOON + timedelta(days=1))
    assert rows_read(page(Selection(), before=deep)) < 100


def test_a_page_of_a_job_of_a_team_or_of_several_teams_reads_about_its_own_rows(many: Job) -> None:
    assert rows_read(page(Selection(job_id=many.id))) < 300
    assert rows_read(page(Selection(teams=frozenset({1003})))) < 300
    assert rows_read(page(Selection(teams=frozenset({1003, 1004, 1005})))) < 600


def test_a_page_of_what_has_not_ended_reads_no_history(many: Job) -> None:
    query = page(Selection(states=(State.WAITING,)))
    assert len(query) == DAYS * ROWS_A_DAY // 1000 + 1
    assert rows_read(query) < 100


def test_a_time_range_reads_only_the_days_in_it(many: Job) -> None:
    day = NOON + timedelta(days=2)
    query = page(Selection(since=day, until=day + timedelta(hours=1)))
    plan = query.explain()
    assert "p20260603" in plan
    assert not any(other in plan for other in ("p20260602", "p20260604", "_default"))
    assert rows_read(query) < 100


def test_no_list_counts_and_a_page_is_a_handful_of_queries(many: Job, root: APIClient) -> None:
    for path in ("executions", "executions?status=Waiting", "jobs"):
        with CaptureQueriesContext(
            connection,
        ) as done:
            assert root.get(f"/api/v1/{path}").status_code == 200
        texts = [query["sql"].lower() for query in done.captured_queries]
        assert not any("count(" in text for text in texts)
        assert len(texts) <= 5


def plan_of(sql: str) -> list[dict[str, Any]]:
    with connection.cursor() as cursor:
        cursor.execute("EXPLAIN (ANALYZE, FORMAT JSON) " + sql)
        (answer,) = cursor.fetchone()[0]
    return list(nodes(answer["Plan"]))


def rows_read_by(sql: str) -> int:
    read = sum(
        (node["Actual Rows"] + node.get("Rows Removed by Filter", 0)) * node["Actual Loops"]
        for node in plan_of(sql)
        if "Relation Name" in node
    )
    return int(read)


WINDOW = 40
COMBINATIONS = [
    Selection(teams=teams, job_id=job, states=states, since=since, until=until)
    for teams in (None, frozenset({1003}), frozenset({1003, 1004, 1005}), frozenset({1}))
    for job in (None, UUID(int=0))
    for states in (
        *((state,) for state in State),
        (State.WAITING, State.ACTIVE),
        (State.WAITING, State.CANCELLED),
        (),
    )
    for since, until in ((None, None), (NOON + timedelta(days=2), NOON + timedelta(days=3)))
]
SIFTED: list[dict[str, Any]] = [{"reasons": ("failed",)}, {"triggers": (Trigger.MANUAL,)}, {"attempt": 3}]
FURTHER = [
    replace(Selection(teams=teams, job_id=job, states=states), **further)
    for teams in (None, frozenset({1003}), frozenset({1003, 1004, 1005}))
    for job in (None, UUID(int=0))
    for states in ((), (State.WAITING, State.ACTIVE))
    for further in SIFTED
]


ASKED: list[tuple[Selection, Order]] = [
    *((selection, NEWEST) for selection in [*COMBINATIONS, *FURTHER]),
    *((selection, OLDEST) for selection in [*COMBINATIONS[::3], *FURTHER]),
]


def test_whatever_a_list_is_filtered_by_a_page_reads_a_bounded_number_of_rows(
    many: Job, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No filter scans or sorts a partition: a window for its end, one for what passes, a page, what waits."""
    monkeypatch.setattr(pages, "WINDOW", WINDOW)
    monkeypatch.setattr(pages, "TIME_S", 0.0)
    waiting = DAYS * ROWS_A_DAY // 1000 + 1
    for selection, order in ASKED:
        asked = replace(selection, job_id=many.id) if selection.job_id else selection
        with CaptureQueriesContext(connection) as done:
            listed(asked, limit=20, order=order)
        parts = len(asked.teams or ()) or 1
        most = parts * (2 * WINDOW + waiting) + 3 * 21
        read = 0
        for query in done.captured_queries:
            plan = plan_of(query["sql"])
            scanned = [node for node in plan if node["Node Type"] == "Seq Scan"]
            assert all(node["Actual Rows"] < 50 for node in scanned), (asked, scanned)
            sorted_ = [node for node in plan if node["Node Type"] == "Sort"]
            assert all(node["Plans"][0]["Actual Rows"] <= most for node in sorted_), (asked, sorted_)
            read += rows_read_by(query["sql"])
        assert read <= most, (asked, read, most)
