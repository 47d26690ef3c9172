"""The kinds of schedule. Values: frozen, hashable, without a clock; all instants are aware, in UTC.

A schedule is first anchored to the instant its job was created at (``anchored``); from then on it says
by itself when it fires. ``first_fire`` and ``next_fire`` of a recurring kind are strictly later than the
instant they are given, and depend on nothing else.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import ClassVar

from jobs.schedules.evaluation import CronRule, evaluator_of
from scheduler_project.kernel.clock import LATEST, MICROSECOND
from scheduler_project.kernel.durations import format_duration


class Schedule(ABC):
    """When a job runs."""

    __slots__ = ()
    kind: ClassVar[str]
    recurring: ClassVar[bool]

    @abstractmethod
    def to_json(self) -> dict[str, object]:
        """The normal form: JSON types, camelCase keys; equal schedules give equal forms.

        ``parse_schedule`` reads it back to an equal schedule.
        """

    def anchored(self, created: datetime) -> Schedule:
        """This schedule with what it says relative to its job's creation turned into instants."""
        del created
        return self

    def given_at(self, instant: datetime) -> Schedule:
        """This schedule without the fires up to ``instant``; a kind that fires once stays as it is."""
        del instant
        return self

    @abstractmethod
    def first_fire(self, created: datetime) -> datetime | None:
        """The first fire of a job created then; an ``at`` in the past is due at once."""

    @abstractmethod
    def next_fire(self, after: datetime) -> datetime | None:
        """The first fire strictly later than ``after``; None when there is none."""


@dataclass(frozen=True, slots=True)
class Span:
    """Start and end date of a recurring schedule, both included; None is unlimited.

    ``given``: when the schedule was given to its job; only later fires count. It is the job's, and no part
    of the normal form.
    """

    start: datetime | None = None
    end: datetime | None = None
    given: datetime | None = None

    def from_start(self, after: datetime) -> datetime:
        """The instant to search from: ``after``, or just before the start date where that is later."""
        after = after if self.given is None else max(after, self.given)
        return after if self.start is None else max(after, self.start - MICROSECOND)

    def admit(self, fire: datetime | None) -> datetime | None:
        """The fire, unless it is past the end date."""
        return None if fire is None or (self.end is not None and fire > self.end) else fire

    def until_end(self, until: datetime) -> datetime:
        return until if self.end is None else min(until, self.end)

    def to_json(self) -> dict[str, object]:
        limits = {"start": self.start, "end": self.end}
        return {name: format_instant(limit) for name, limit in limits.items() if limit is not None}


UNLIMITED = Span()


@dataclass(frozen=True, slots=True)
class Cron(Schedule):
    """Fires when the clock of a time zone shows a time that the expression names."""

    kind: ClassVar[str] = "cron"
    recurring: ClassVar[bool] = True

    rule: CronRule
    span: Span = UNLIMITED

    def to_json(self) -> dict[str, object]:
        return {
            "cron": self.rule.text,
            "timezone": self.rule.timezone,
            "dstGap": self.rule.dst_gap.value,
            "dstOverlap": self.rule.dst_overlap.value,
            "dayMatch": self.rule.day_match.value,
            **self.span.to_json(),
        }

    def given_at(self, instant: datetime) -> Cron:
        return replace(self, span=replace(self.span, given=instant))

    def first_fire(self, created: datetime) -> datetime | None:
        return self.next_fire(created)

    def next_fire(self, after: datetime) -> datetime | None:
        return self.span.admit(evaluator_of(self.rule).next_fire(self.span.from_start(after)))


@dataclass(frozen=True, slots=True)
class Every(Schedule):
    """Fires at anchor + interval, anchor + 2 intervals, …; with a start date, at the start date too.

    The start date is the anchor where both are not given. Without any of them the instant that is asked
    about is the anchor.
    """

    kind: ClassVar[str] = "every"
    recurring: ClassVar[bool] = True

    interval: timedelta
    anchor: datetime | None = None
    span: Span = UNLIMITED

    def to_json(self) -> dict[str, object]:
        anchor = {} if self.anchor is None else {"anchor": format_instant(self.anchor)}
        return {"every": format_duration(self.interval), **anchor, **self.span.to_json()}

    def anchored(self, created: datetime) -> Every:
        if self.anchor is not None:
            return self
        return replace(self, anchor=self.span.start or created.astimezone(UTC))

    def given_at(self, instant: datetime) -> Every:
        return replace(self, span=replace(self.span, given=instant))

    def first_fire(self, created: datetime) -> datetime | None:
        return self.next_fire(created)

    def next_fire(self, after: datetime) -> datetime | None:
        anchor = self._anchor_for(after)
        count = max((self.span.from_start(after) - anchor) // self.interval + 1, self._first_count)
        fire = anchor + count * self.interval
        return self.span.admit(fire) if fire < LATEST else None

    def count_between(self, after: datetime, until: datetime) -> int:
        """How many fires lie in (after, until]; arithmetic alone."""
        anchor, until = self._anchor_for(after), self.span.until_end(min(until, LATEST - MICROSECOND))
        last = (until - anchor) // self.interval
        first = max((self.span.from_start(after) - anchor) // self.interval + 1, self._first_count)
        return max(0, last - first + 1)

    def nth_last(self, until: datetime, count: int) -> datetime:
        """The earliest of the last ``count`` fires up to ``until``; there must be that many."""
        anchor, until = self._anchor_for(until), self.span.until_end(min(until, LATEST - MICROSECOND))
        return anchor + ((until - anchor) // self.interval - count + 1) * self.interval

    def _anchor_for(self, after: datetime) -> datetime:
        return self.anchor or self.span.start or after

    @property
    def _first_count(self) -> int:
        return 0 if self.span.start is not None else 1


@dataclass(frozen=True, slots=True)
class At(Schedule):
    """Fires once, at an instant."""

    kind: ClassVar[str] = "at"
    recurring: ClassVar[bool] = False

    instant: datetime

    def to_json(self) -> dict[str, object]:
        return {"at": format_instant(self.instant)}

    def first_fire(self, created: datetime) -> datetime:
        del created
        return self.instant

    def next_fire(self, after: datetime) -> datetime | None:
        return self.instant if self.instant > after else None


@dataclass(frozen=True, slots=True)
class After(Schedule):
    """Fires once, a delay after the job was created; as long as it is not anchored it has no next fire."""

    kind: ClassVar[str] = "after"
    recurring: ClassVar[bool] = False

    delay: timedelta

    def to_json(self) -> dict[str, object]:
        return {"after": format_duration(self.delay)}

    def anchored(self, created: datetime) -> At:
        return At(created.astimezone(UTC) + self.delay)

    def first_fire(self, created: datetime) -> datetime:
        return self.anchored(created).instant

    def next_fire(self, after: datetime) -> None:
        del after


@dataclass(frozen=True, slots=True)
class Now(Schedule):
    """Fires once, when the job is created; as long as it is not anchored it has no next fire."""

    kind: ClassVar[str] = "now"
    recurring: ClassVar[bool] = False

    def to_json(self) -> dict[str, object]:
        return {"now": True}

    def anchored(self, created: datetime) -> At:
        return At(created.astimezone(UTC))

    def first_fire(self, created: datetime) -> datetime:
        return created.astimezone(UTC)

    def next_fire(self, after: datetime) -> None:
        del after


def format_instant(instant: datetime) -> str:
    """ISO 8601 in UTC with Z; a fraction only where there is one."""
    return instant.astimezone(UTC).isoformat().replace("+00:00", "Z")
