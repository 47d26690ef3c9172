"""What holds for every schedule."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import product
from uuid import UUID

from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.schedules import (
    Cron,
    CronRule,
    DayMatch,
    DstGap,
    DstOverlap,
    Schedule,
    count_fires,
    fires_between,
    jitter_offset,
    parse_schedule,
    preview_fires,
    warnings,
)
from jobs.schedules.evaluation import Evaluator, evaluator_of
from jobs.schedules.zones import stretch_at
from scheduler_project.kernel.errors import InvalidValue
from tests.unit.schedules.cases import EXPRESSIONS

ZONES = ["UTC", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "Pacific/Apia", "Asia/Gaza"]
instants = st.datetimes(
    min_value=datetime(1990, 1, 1),  # noqa: DTZ001 - Hypothesis adds the zone
    max_value=datetime(2090, 1, 1),  # noqa: DTZ001 - Hypothesis adds the zone
    timezones=st.just(UTC),
)
rules = st.builds(
    CronRule,
    text=st.sampled_from([text for text in EXPRESSIONS if not text.startswith("@")]).map(
        lambda text: parse_schedule(text).to_json()["cron"]
    ),
    timezone=st.sampled_from(ZONES),
    dst_gap=st.sampled_from(DstGap),
    dst_overlap=st.sampled_from(DstOverlap),
    day_match=st.sampled_from(DayMatch),
)
crons = rules.map(Cron)
intervals = st.builds(
    lambda seconds, anchor: parse_schedule({"every": seconds, "anchor": anchor.isoformat()}),
    st.integers(1, 10**6),
    instants,
)
recurring = crons | intervals
quick = settings(max_examples=150)


@quick
@given(recurring, instants)
def test_each_fire_is_strictly_later_than_the_one_before(schedule: Schedule, after: datetime):
    for _ in range(5):
        fire = schedule.next_fire(after)
        if fire is None:
            return
        assert fire > after
        assert fire.tzinfo is UTC
        after = fire


@quick
@given(recurring, instants, st.floats(0, 1))
def test_the_next_fire_does_not_depend_on_where_it_is_asked_from(
    schedule: Schedule, after: datetime, share: float
):
    fire = schedule.next_fire(after)
    if fire is None:
        return
    between = after + (fire - after) * share
    if between < fire:
        assert schedule.next_fire(between) == fire
    assert schedule.next_fire(fire - timedelta(microseconds=1)) == fire


@quick
@given(rules, instants)
def test_a_shared_answer_is_the_one_that_a_fresh_evaluator_gives(rule: CronRule, after: datetime):
    assert evaluator_of(rule).next_fire(after) == Evaluator(rule).next_fire(after)


@quick
@given(recurring, instants, st.integers(1, 20 * 86_400))
def test_counting_and_listing_agree(schedule: Schedule, after: datetime, seconds: int):
    until = after + timedelta(seconds=seconds)
    listed = fires_between(schedule, after, until, 2000)
    if len(listed) < 2000:
        assert count_fires(schedule, after, until) == len(listed)
    else:
        assert count_fires(schedule, after, listed[-1]) == 2000


@quick
@given(recurring, instants)
def test_the_preview_is_what_planning_from_fire_to_fire_gives(schedule: Schedule, created: datetime):
    planned: list[datetime] = []
    fire = schedule.anchored(created).first_fire(created)
    while fire is not None and len(planned) < 5:
        planned.append(fire)
        fire = parse_schedule(schedule.anchored(created).to_json()).next_fire(fire)
    assert preview_fires(schedule, created, 5) == planned


@quick
@given(recurring)
def test_the_normal_form_is_read_back(schedule: Schedule):
    if isinstance(schedule, Cron) and schedule.next_fire(datetime(2027, 1, 1, tzinfo=UTC)) is None:
        return
    assert parse_schedule(schedule.to_json()) == schedule


@quick
@given(st.text(max_size=30) | st.text("0123456789*/-,LW#? ", max_size=20))
def test_any_text_is_read_or_refused_with_the_same_error(text: str):
    try:
        schedule = parse_schedule(text)
    except InvalidValue:
        return
    assert parse_schedule(schedule.to_json()) == schedule


@quick
@given(st.uuids(), st.timedeltas(min_value=timedelta(microseconds=1), max_value=timedelta(days=365)))
def test_jitter_is_stable_and_within_its_width(job_id: UUID, width: timedelta):
    offset = jitter_offset(job_id, width)
    assert timedelta(0) <= offset < width
    assert jitter_offset(job_id, width) == offset


def around_changes(rule: CronRule, since: datetime, until: datetime) -> list[datetime]:
    """What ``rule`` fires in the hours around each change of its zone's clock in [since, until)."""
    fires: list[datetime] = []
    cursor, reach = since, timedelta(hours=3)
    while cursor < until:
        fires += fires_between(Cron(rule), cursor - reach, cursor + reach, 400)
        cursor = stretch_at(rule.timezone, cursor.replace(tzinfo=None)).end.replace(tzinfo=UTC)
    return fires


@quick
@given(rules, st.integers(2000, 2030))
def test_where_no_change_of_the_clock_is_told_the_policies_change_nothing(rule: CronRule, year: int):
    since, until = (datetime(year + more, 1, 1, tzinfo=UTC) for more in (0, 2))
    if any("the clock in" in warning for warning in warnings(Cron(rule), since)):
        return
    policies = product(DstGap, DstOverlap)
    variants = [replace(rule, dst_gap=gap, dst_overlap=overlap) for gap, overlap in policies]
    first, *others = (around_changes(variant, since, until) for variant in variants)
    assert all(other == first for other in others)


def test_ten_thousand_jobs_on_one_expression_cost_one_evaluation():
    rule = CronRule("0 2 * * *", "Europe/Rome")
    fire = datetime(2027, 6, 1, 0, 0, tzinfo=UTC)
    before = evaluator_of(rule).evaluations
    nexts = {Cron(rule).next_fire(fire + timedelta(milliseconds=i)) for i in range(10_000)}
    assert nexts == {datetime(2027, 6, 2, 0, 0, tzinfo=UTC)}
    assert evaluator_of(rule).evaluations == before + 1
