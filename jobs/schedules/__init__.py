"""When jobs run: pure functions, without Django, clock or database.

``parse_schedule`` reads what people write; the schedule then says when it fires. Times come in as
arguments; all instants are aware, in UTC.
"""

from jobs.schedules.cautions import run_length_warnings, warnings
from jobs.schedules.evaluation import CronRule, DayMatch, DstGap, DstOverlap
from jobs.schedules.fires import (
    count_fires,
    fires_after,
    fires_between,
    fires_of_new,
    jitter_offset,
    last_fire,
    preview_fires,
    spread_fire,
    start_of_last,
)
from jobs.schedules.kinds import After, At, Cron, Every, Now, Schedule, Span
from jobs.schedules.reading import parse_schedule
from jobs.schedules.sentences import describe

__all__ = [
    "After",
    "At",
    "Cron",
    "CronRule",
    "DayMatch",
    "DstGap",
    "DstOverlap",
    "Every",
    "Now",
    "Schedule",
    "Span",
    "count_fires",
    "describe",
    "fires_after",
    "fires_between",
    "fires_of_new",
    "jitter_offset",
    "last_fire",
    "parse_schedule",
    "preview_fires",
    "run_length_warnings",
    "spread_fire",
    "start_of_last",
    "warnings",
]
