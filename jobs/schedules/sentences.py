"""A schedule as a sentence in English.

cron-descriptor words what it words rightly. It knows neither the rule for two restricted day fields nor
lists with ``L``, ``W`` or ``#``, and takes ``*/90`` at its word: these are worded here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import groupby

from cron_descriptor import Options, get_description  # type: ignore[import-untyped,unused-ignore]

from jobs.schedules.evaluation import DayMatch, fields_of
from jobs.schedules.fields import CronFields, MonthDays, Values, WeekDays
from jobs.schedules.kinds import After, At, Cron, Every, Schedule, Span, format_instant
from scheduler_project.kernel.durations import format_duration

WEEKDAY_NAMES = ("Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday")
MONTH_NAMES = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
MOST_NUMBERS = 8
ORDINALS = ("first", "second", "third", "fourth", "fifth")


def describe(schedule: Schedule) -> str:
    """What the schedule says, for people; with the time zone of a cron schedule, and its start and end."""
    if isinstance(schedule, Cron):
        return f"{_describe_cron(schedule)} ({schedule.rule.timezone}){_describe_span(schedule.span)}"
    if isinstance(schedule, Every):
        return f"Every {format_duration(schedule.interval)}{_describe_span(schedule.span)}"
    if isinstance(schedule, At):
        return f"Once, at {format_instant(schedule.instant)}"
    if isinstance(schedule, After):
        return f"Once, {format_duration(schedule.delay)} after the job is created"
    return "Once, as soon as the job is created"


def _describe_span(span: Span) -> str:
    start = f", from {format_instant(span.start)}" if span.start else ""
    end = f", until {format_instant(span.end)}" if span.end else ""
    return start + end


def _describe_cron(schedule: Cron) -> str:
    fields = fields_of(schedule.rule.text)
    times = " ".join(_worded(values) for values in (fields.second, fields.minute, fields.hour) if values)
    if _within_the_library(fields):
        return _library_sentence(f"{times} {fields.day.text} {fields.month.text} {fields.weekday.text}")
    days = _describe_days(fields, schedule.rule.day_match)
    return f"{_library_sentence(f'{times} * * *')}, {days}{_describe_months(fields.month)}"


def _library_sentence(text: str) -> str:
    options = Options()
    options.use_24hour_time_format = True
    return str(get_description(text, options))


def _worded(values: Values) -> str:
    """The field as the library should read it: what names one value (``*/90``, ``5-5``) is that value."""
    return str(values.values[0]) if len(values.values) == 1 else values.text


def _within_the_library(fields: CronFields) -> bool:
    both_named = fields.day.text != "*" and fields.weekday.text != "*"
    parts = (fields.day.text, fields.weekday.text)
    listed = any("," in part and any(sign in part for sign in "LW#") for part in parts)
    counted_back = "L-" in fields.day.text
    months_plain = "/" not in fields.month.text
    return months_plain and not (both_named or listed or counted_back or _names_sunday_twice(fields.weekday))


def _names_sunday_twice(rule: WeekDays) -> bool:
    """``0-7``, ``SUN,0``: the library would say from Sunday to Sunday."""
    return sum(name in rule.text for name in ("0", "7", "SUN")) > 1


def _describe_days(fields: CronFields, day_match: DayMatch) -> str:
    by_day, by_weekday = describe_month_days(fields.day), describe_weekdays(fields.weekday)
    if fields.day.text == "*":
        return f"on {by_weekday}" if len(fields.weekday.values) < len(WEEKDAY_NAMES) else "every day"
    if fields.weekday.text == "*":
        return f"on {by_day} of the month"
    if day_match is DayMatch.AND or fields.day.starred or fields.weekday.starred:
        return f"on {by_day} of the month, and only where that is {by_weekday}"
    return f"on {by_day} of the month, and also on {by_weekday}"


def describe_month_days(rule: MonthDays) -> str:
    """``day 13``, ``days 1 to 7 and 15``, ``the last day``, …"""
    numbers = _runs(sorted(rule.values), str)
    if len(numbers) > MOST_NUMBERS:
        return f"the days of {rule.text!r}"
    plural = "s" if len(rule.values) > 1 else ""
    parts = [f"day{plural} {_listed(numbers)}"] if numbers else []
    parts += [_counted_back(back) for back in sorted(rule.from_end)]
    parts += [f"the weekday nearest to day {day}" for day in sorted(rule.nearest_weekdays)]
    return _listed([*parts, "the last weekday"] if rule.last_weekday else parts)


def _counted_back(days: int) -> str:
    named = {0: "the last day", 1: "the day before the last day"}
    return named.get(days, f"the day {days} days before the last day")


def describe_weekdays(rule: WeekDays) -> str:
    """``Friday``, ``Monday to Friday``, ``the second Friday of the month``, …"""
    monday_first = sorted((value - 1) % 7 for value in rule.values)
    parts = _runs(monday_first, lambda number: WEEKDAY_NAMES[(number + 1) % 7])
    parts += [
        f"the {ORDINALS[k - 1]} {WEEKDAY_NAMES[weekday]} of the month" for weekday, k in sorted(rule.nth)
    ]
    parts += [f"the last {WEEKDAY_NAMES[weekday]} of the month" for weekday in sorted(rule.last)]
    return _listed(parts, "or")


def _describe_months(months: Values) -> str:
    if len(months.values) == len(MONTH_NAMES):
        return ""
    return ", in " + _listed(_runs(months.values, lambda number: MONTH_NAMES[number - 1]))


def _runs(numbers: Iterable[int], word: Callable[[int], str]) -> list[str]:
    """Rising numbers as names, with three or more in a row as ``first to last``."""
    found: list[str] = []
    for _, group in groupby(enumerate(numbers), lambda pair: pair[1] - pair[0]):
        run = [word(number) for _, number in group]
        found += [f"{run[0]} to {run[-1]}"] if len(run) > 2 else run
    return found


def _listed(parts: list[str], last_word: str = "and") -> str:
    if len(parts) < 2:
        return "".join(parts)
    return f"{', '.join(parts[:-1])} {last_word} {parts[-1]}"
