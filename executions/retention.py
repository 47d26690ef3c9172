"""What is kept for the retention time, and then goes: days of runs with their history, and their output."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from executions.logs import log_store
from executions.partitions import day_of, maintain


def keep_up(now: datetime, *, ahead: int, retention: timedelta) -> dict[str, Any]:
    """One round: partitions made and dropped (see partitions.py), days of output removed. Idempotent.

    The output goes with its day; this process has to share PUNCTUAL_LOG_DIR with the workers.
    """
    done = maintain(now, ahead=ahead, retention=retention)
    oldest = min([(now - retention).astimezone(UTC).date(), *(day_of(name) for name in done.kept)])
    return {
        "created": done.created,
        "dropped": done.dropped,
        "kept": done.kept,
        "logs": log_store().forget_before(oldest),
    }
