"""What in a schedule may surprise whoever wrote it, in sentences."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise

from jobs.schedules.evaluation import (
    RULES_AS_OF,
    CronRule,
    DayMatch,
    DstGap,
    DstOverlap,
    Evaluator,
    evaluator_of,
    fields_of,
)
from jobs.schedules.fields import CronFields, Values
from jobs.schedules.kinds import Cron, Schedule
from jobs.schedules.sentences import describe_month_days, describe_weekdays
from jobs.schedules.zones import Stretch, stretch_at
from scheduler_project.kernel.durations import format_duration

LOOK_AHEAD = timedelta(days=2 * 366)
MONTH_LENGTHS = (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
LONGEST_MONTH = 31
_OVERLAP_OUTCOMES = {
    DstOverlap.FIRST: "it runs the first time only",
    DstOverlap.SECOND: "it runs the second time only",
    DstOverlap.BOTH: "it runs both times",
}


def warnings(schedule: Schedule, since: datetime = RULES_AS_OF, until: datetime | None = None) -> list[str]:
    """Sentences on what is unusual; empty where nothing is.

    Changes of the clock are looked for in the two years from ``since``, and on to ``until`` where that is
    later (the last fire that a preview shows); never outside the schedule's start and end date.
    """
    if not isinstance(schedule, Cron):
        return []
    fields = fields_of(schedule.rule.text)
    return [
        *_on_seconds(fields),
        *_on_days(fields, schedule.rule.day_match),
        *_on_missing_days(fields),
        *_on_fifth_weekday(fields),
        *_on_steps(fields),
        *_on_clock_changes(schedule, since, until),
        *_on_idle_policies(schedule.rule, fields),
    ]


STILL_RUNS = "it still runs when the next is due"


def run_length_warnings(
    fires: Sequence[datetime], usual: timedelta, consequence: str = STILL_RUNS
) -> list[str]:
    """Whether ``fires`` follow each other faster than a run usually takes, and what comes of it."""
    closest = min((later - earlier for earlier, later in pairwise(fires)), default=None)
    if closest is None or closest >= usual:
        return []
    length = usual if usual < timedelta(seconds=10) else timedelta(seconds=round(usual.total_seconds()))
    return [
        f"A run usually takes {format_duration(length)}, and fires are as little as "
        f"{format_duration(closest)} apart: {consequence}."
    ]


def _on_seconds(fields: CronFields) -> Iterator[str]:
    if fields.second is not None:
        yield f"The expression has six fields: the first, {fields.second.text!r}, is the second."


def _on_days(fields: CronFields, day_match: DayMatch) -> Iterator[str]:
    if "*" in (fields.day.text, fields.weekday.text):
        return
    by_day, by_weekday = describe_month_days(fields.day), describe_weekdays(fields.weekday)
    if day_match is DayMatch.AND or fields.day.starred or fields.weekday.starred:
        yield f"It runs only on {by_day} where that is also {by_weekday}; both day fields have to match."
    else:
        yield (
            f"It runs on {by_day} and also on {by_weekday}: either day field is enough. "
            'Set dayMatch to "and" where both have to match.'
        )


def _on_missing_days(fields: CronFields) -> Iterator[str]:
    rule = fields.day
    if rule.starred or len(rule.values) == LONGEST_MONTH:
        return
    wanted = max(rule.values | rule.nearest_weekdays | {back + 1 for back in rule.from_end}, default=0)
    if any(wanted > MONTH_LENGTHS[month - 1] for month in fields.month.values):
        yield (
            f"Not every month or year has a day {wanted}: {rule.text!r} runs less often in a shorter one, or "
            "not at all. L is the last day of every month."
        )


def _on_fifth_weekday(fields: CronFields) -> Iterator[str]:
    if any(k == 5 for _, k in fields.weekday.nth):
        yield "Most months have no fifth of a weekday and do not run on it; L is the last of every month."


def _on_steps(fields: CronFields) -> Iterator[str]:
    stepped = (
        ("second", fields.second, 60, "minute"),
        ("minute", fields.minute, 60, "hour"),
        ("hour", fields.hour, 24, "day"),
        ("month", fields.month, 12, "year"),
    )
    for name, values, size, whole in stepped:
        if values is not None:
            yield from _on_step(name, values, size, whole)
    if _step_of(fields.day.text) is not None:
        yield f"{fields.day.text!r} in the day-of-month field begins anew on day 1 of every month."
    step = _step_of(fields.weekday.text)
    if step is not None and 7 % step:
        yield f"{fields.weekday.text!r} in the day-of-week field begins anew on every Sunday."


def _on_step(name: str, values: Values, size: int, whole: str) -> Iterator[str]:
    step = _step_of(values.text)
    if step is None:
        return
    if step >= size:
        only = values.values[0]
        yield f"{values.text!r} in the {name} field is {only} alone: a step ends with the {whole}."
    elif size % step:
        last_gap = size - values.values[-1] + values.values[0]
        yield (
            f"{values.text!r} in the {name} field begins anew with every {whole}: "
            f"from {values.values[-1]} to the next {values.values[0]} it is {last_gap}, not {step}."
        )


def _step_of(text: str) -> int | None:
    """The n of ``*/n``; None for everything else."""
    return int(text[2:]) if text.startswith("*/") and text[2:].isdigit() else None


def _on_clock_changes(schedule: Cron, since: datetime, until: datetime | None) -> Iterator[str]:
    """The first gap and the first overlap that hold a time of this rule."""
    rule = schedule.rule
    evaluator = evaluator_of(rule)
    if not evaluator.fixed and len(evaluator.face.times.hours) == 24:
        return
    begin = schedule.span.from_start(since)
    end = schedule.span.until_end(max(begin + LOOK_AHEAD, until or begin))
    changes = list(_changes(rule.timezone, begin, end))
    gaps = (_on_gap(rule, evaluator, stretch) for stretch in changes)
    overlaps = (_on_overlap(rule, evaluator, stretch) for stretch in changes)
    yield from islice(filter(None, gaps), 1)
    yield from islice(filter(None, overlaps), 1)


def _changes(zone: str, since: datetime, until: datetime) -> Iterator[Stretch]:
    """The stretches that a change of the clock in [since, until) begins."""
    cursor, end = (limit.astimezone(UTC).replace(tzinfo=None) for limit in (since, until))
    while cursor < end:
        stretch = stretch_at(zone, cursor)
        if stretch.start >= cursor and stretch.clock_before != stretch.local_start:
            yield stretch
        cursor = stretch.end


def _on_gap(rule: CronRule, evaluator: Evaluator, stretch: Stretch) -> str | None:
    lost = evaluator.face.first(stretch.clock_before, stretch.local_start)
    if lost is None:
        return None
    if not evaluator.fixed:
        outcome = "it does not run then, because it follows elapsed time"
    elif rule.dst_gap is DstGap.SKIP:
        outcome = "it does not run then (dstGap skip)"
    else:
        outcome = f"it runs at {stretch.local_start:%H:%M} (dstGap runAfter)"
    return (
        f"On {lost:%Y-%m-%d} the clock in {rule.timezone} goes {_change(stretch, 'to')}: "
        f"{lost:%H:%M} does not exist, and {outcome}."
    )


def _on_overlap(rule: CronRule, evaluator: Evaluator, stretch: Stretch) -> str | None:
    twice = evaluator.face.first(stretch.local_start, stretch.clock_before)
    if twice is None:
        return None
    if evaluator.fixed:
        outcome = f"{_OVERLAP_OUTCOMES[rule.dst_overlap]} (dstOverlap {rule.dst_overlap.value})"
    else:
        outcome = "it runs both times, because it follows elapsed time"
    return (
        f"On {twice:%Y-%m-%d} the clock in {rule.timezone} goes {_change(stretch, 'back to')}: "
        f"{twice:%H:%M} comes twice, and {outcome}."
    )


def _change(stretch: Stretch, towards: str) -> str:
    """``from 02:00 to 03:00``; with the dates where they differ."""
    before, after = stretch.clock_before, stretch.local_start
    form = "%H:%M" if before.date() == after.date() else "%Y-%m-%d %H:%M"
    return f"from {before:{form}} {towards} {after:{form}}"


def _on_idle_policies(rule: CronRule, fields: CronFields) -> Iterator[str]:
    defaults = rule.dst_gap is DstGap.RUN_AFTER and rule.dst_overlap is DstOverlap.FIRST
    if fields.follows_elapsed_time and not defaults:
        yield (
            "dstGap and dstOverlap have no effect here: a minute or hour field that begins with * "
            "follows elapsed time."
        )
