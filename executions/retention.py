"""What is kept for the retention time, and then goes: days of runs with their history, and their output."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from executions.log_archive import log_archive
from executions.log_places import log_store
from executions.partitions import day_of, maintain
from executions.tallies import tidy


def keep_up(now: datetime, *, ahead: int, retention: timedelta) -> dict[str, Any]:
    """One round: partitions made and dropped (see partitions.py), tallies put together, days of output
    removed. Idempotent.

    The output goes with its day: from the archive, and from PUNCTUAL_LOG_DIR as far as it is shared.
    """
    done = maintain(now, ahead=ahead, retention=retention)
    tidy(now, retention=retention)
    oldest = min([(now - retention).astimezone(UTC).date(), *(day_of(name) for name in done.kept)])
    return {
        "created": done.created,
        "dropped": done.dropped,
        "kept": done.kept,
        "logs": sorted({*log_store().forget_before(oldest), *log_archive().forget_before(oldest)}),
    }
