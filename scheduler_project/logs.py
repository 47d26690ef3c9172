"""How a log line reads: time, level, the event's name, then its fields as key=value."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

REFUSALS = ("django.request", "django.security")
"""Loggers that say of each 4xx what was asked; that a client erred needs no traceback."""
_STANDARD = set(logging.makeLogRecord({}).__dict__) | {"message", "asctime", "taskName", "data"}


class RefusalsInShort(logging.Filter):
    """A filter of handlers: what a client did wrong is one line; faults of ours keep their traceback."""

    def filter(self, record: logging.LogRecord) -> bool:
        if record.name.startswith(REFUSALS) and getattr(record, "status_code", 500) < 500:
            record.exc_info = record.exc_text = None
        return True


class EventFormatter(logging.Formatter):
    """One line an event: ``2026-11-30T02:00:00.123Z INFO beat.dispatcher runs_sent count=12 shard=3``."""

    def format(self, record: logging.LogRecord) -> str:
        at = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds")
        fields = "".join(
            f" {name}={_field(value)}" for name, value in record.__dict__.items() if name not in _STANDARD
        )
        line = f"{at.replace('+00:00', 'Z')} {record.levelname} {record.name} {record.getMessage()}{fields}"
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        return line


def _field(value: object) -> str:
    text = str(value)
    plain = text and text.isprintable() and not any(c in ' "' for c in text)
    return text if plain else json.dumps(text)
