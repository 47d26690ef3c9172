"""Reads a schedule as REST, the admin and files give it. Whatever is not understood is refused."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from functools import lru_cache
from typing import TypeVar

from jobs.schedules.evaluation import (
    EARLIEST,
    HORIZON,
    RULES_AS_OF,
    CronRule,
    DayMatch,
    DstGap,
    DstOverlap,
    evaluator_of,
)
from jobs.schedules.fields import CronFields, read_fields
from jobs.schedules.kinds import UNLIMITED, After, At, Cron, Every, Now, Schedule, Span
from jobs.schedules.zones import check_zone, zone_names
from scheduler_project.kernel.clock import LATEST
from scheduler_project.kernel.durations import parse_duration
from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

SHORTEST_INTERVAL = timedelta(seconds=1)
ALLOWED = (
    'a cron expression such as "0 2 * * *" or "0 2 * * * Europe/Berlin", "every 10s", '
    '"at 2026-12-24T18:00:00Z", "after 5m", "now", or an object such as {"cron": …, "timezone": …}'
)
_KEYS = {
    "cron": ("timezone", "dstGap", "dstOverlap", "dayMatch", "start", "end"),
    "every": ("anchor", "start", "end"),
    "at": (),
    "after": (),
    "now": (),
}
_IN_WORDS = ("every", "at", "after")
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LIKE_A_ZONE = re.compile(r"[A-Za-z_]{2,40}(?:/[A-Za-z_][A-Za-z0-9_+-]{0,40}){1,2}", re.ASCII)
Choice = TypeVar("Choice", bound=StrEnum)


def parse_schedule(value: object, *, field: str = "schedule") -> Schedule:
    """The schedule that ``value`` states: a text (see ``_object_of``), or an object with one of the keys
    cron, every, at, after, now and what belongs to it; also what ``to_json`` gave.

    Raises InvalidValue, which names the value and what is allowed, for everything else: unknown keys and
    zones, fields out of range, instants without an offset, expressions that never fire.
    """
    if isinstance(value, Schedule):
        return value
    if isinstance(value, str) and value.strip():
        value = _object_of(value)
    if not isinstance(value, Mapping):
        raise InvalidValue(f"{_as_sent(value)} is not a schedule: allowed is {ALLOWED}", field=field)
    return _READERS[_kind_of(value, field)](value, field)


def _object_of(text: str) -> Mapping[object, object]:
    """What a text stands for: ``now``, ``every 30s``, ``after 5m``, ``at …`` or the instant alone, and else a
    cron expression, with the name of a zone behind it or without."""
    begin, _, rest = text.strip().partition(" ")
    kind = begin.lower()
    if kind == "now" and not rest:
        return {"now": True}
    if kind in _IN_WORDS:
        return {kind: rest.strip()}
    if _DATE.match(begin):
        return {"at": text.strip()}
    *expression, last = text.split()
    if expression and _names_a_zone(last):
        return {"cron": " ".join(expression), "timezone": last}
    return {"cron": text}


def _names_a_zone(word: str) -> bool:
    """Also a wrong name with a slash, so that it is refused as a zone; ``MON/2`` is a field's."""
    return word in zone_names() or _LIKE_A_ZONE.fullmatch(word) is not None


def _as_sent(value: object) -> str:
    """``value`` as JSON writes it, where Python has another name for it."""
    return json.dumps(value) if value is None or isinstance(value, bool) else shown(value)


def _kind_of(value: Mapping[object, object], field: str) -> str:
    kinds = [kind for kind in _KEYS if kind in value]
    if len(kinds) != 1:
        raise InvalidValue(
            f"{shown(dict(value))} has {len(kinds)} of the keys {', '.join(_KEYS)}, and needs exactly one: "
            f"allowed is {ALLOWED}",
            field=field,
        )
    unknown = [key for key in value if key not in (kinds[0], *_KEYS[kinds[0]])]
    if unknown:
        with_it = ", ".join(_KEYS[kinds[0]]) or "nothing else"
        raise InvalidValue(
            f"{shown(unknown[0])} is not known in a schedule with {kinds[0]!r}: allowed with it is {with_it}",
            field=field,
        )
    return kinds[0]


def _read_cron(value: Mapping[object, object], field: str) -> Cron:
    fields = _fields(value["cron"], field)
    rule = CronRule(
        text=fields.text,
        timezone=check_zone(value.get("timezone", "UTC"), field=field),
        dst_gap=_choice(DstGap, value, "dstGap", field) or DstGap.RUN_AFTER,
        dst_overlap=_choice(DstOverlap, value, "dstOverlap", field) or DstOverlap.FIRST,
        day_match=_choice(DayMatch, value, "dayMatch", field) or DayMatch.OR,
    )
    if not _ever_fires(rule):
        raise InvalidValue(f"{shown(value['cron'])} never fires: {_why_never(rule)}", field=field)
    cron = Cron(rule, _span(value, field))
    _check_span(cron, cron.span, field)
    return cron


def _fields(text: object, field: str) -> CronFields:
    if not isinstance(text, str):
        raise InvalidValue(f"{shown(text)} is not a cron expression: it is text like 0 2 * * *", field=field)
    return read_fields(text, field=field)


@lru_cache(maxsize=8192)
def _ever_fires(rule: CronRule) -> bool:
    """Whether it fires by the rules of the calendar and of its zone as they are known for the future."""
    return evaluator_of(rule).next_fire(RULES_AS_OF) is not None


def _why_never(rule: CronRule) -> str:
    since = RULES_AS_OF.replace(tzinfo=None)
    if evaluator_of(rule).face.first(since, since + HORIZON) is None:
        return "no date matches it"
    return (
        f"the clock in {rule.timezone} is put forward past each time that it names, "
        f"and it does not run then (dstGap {rule.dst_gap.value})"
    )


def _choice(kind: type[Choice], value: Mapping[object, object], key: str, field: str) -> Choice | None:
    if key not in value:
        return None
    for choice in kind:
        if choice.value == value[key]:
            return choice
    allowed = ", ".join(kind)
    raise InvalidValue(f"{shown(value[key])} is not allowed for {key}: it is one of {allowed}", field=field)


def _read_every(value: Mapping[object, object], field: str) -> Every:
    interval = parse_duration(value["every"], field=field)
    if interval < SHORTEST_INTERVAL:
        raise InvalidValue(f"{shown(value['every'])} is too short: every is at least 1s", field=field)
    anchor = _instant(value["anchor"], "anchor", field) if "anchor" in value else None
    every = Every(interval, anchor, _span(value, field))
    _check_span(every, every.span, field)
    return every


def _read_at(value: Mapping[object, object], field: str) -> At:
    return At(_instant(value["at"], "at", field))


def _read_after(value: Mapping[object, object], field: str) -> After:
    return After(parse_duration(value["after"], field=field))


def _read_now(value: Mapping[object, object], field: str) -> Now:
    if value["now"] is not True:
        raise InvalidValue(f"{shown(value['now'])} is not allowed for now: it is true", field=field)
    return Now()


_READERS: dict[str, Callable[[Mapping[object, object], str], Schedule]] = {
    "cron": _read_cron,
    "every": _read_every,
    "at": _read_at,
    "after": _read_after,
    "now": _read_now,
}


def _span(value: Mapping[object, object], field: str) -> Span:
    limits = {key: _instant(value[key], key, field) for key in ("start", "end") if value.get(key) is not None}
    return Span(limits.get("start"), limits.get("end")) if limits else UNLIMITED


def _check_span(schedule: Schedule, span: Span, field: str) -> None:
    """Refuses a span in which nothing fires. Whether an end alone is too early, only a clock could say."""
    if span.start is None or span.end is None:
        return
    if span.start > span.end:
        raise InvalidValue(f"start {span.start} is later than end {span.end}", field=field)
    if schedule.next_fire(span.start - timedelta(microseconds=1)) is None:
        raise InvalidValue(f"it never fires between start {span.start} and end {span.end}", field=field)


def _instant(value: object, key: str, field: str) -> datetime:
    instant = _read_instant(value)
    if instant is None or instant.utcoffset() is None:
        raise InvalidValue(
            f"{shown(value)} is not allowed for {key}: it is an instant with its offset, "
            "such as 2026-12-24T18:00:00Z",
            field=field,
        )
    if not EARLIEST.year <= instant.year < LATEST.year or not EARLIEST <= instant < LATEST:
        raise InvalidValue(f"{shown(value)} is not allowed for {key}: years are 1970 to 2999", field=field)
    return instant.astimezone(UTC)


def _read_instant(value: object) -> datetime | None:
    if isinstance(value, datetime):
        return value
    if not isinstance(value, str):
        return None
    try:
        return datetime.fromisoformat(value.strip().upper())
    except ValueError:
        return None
