"""The entries of ``beat_schedule``: each fire goes out once, however many beats run.

The time of an entry's last fire is in Redis; of the beats that find it due, the one whose
compare-and-set wins sends the task. A beat that dies between the two skips this fire: what
runs from here must be idempotent and come again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from executions.store import Script, Store
from scheduler_project.kernel.clock import Clock

_FIRE = Script("beat.lua", "fire.lua")
PERIOD_S = 1.0


class PeriodicEntries:
    """``send`` publishes the task of one of Celery's ScheduleEntry."""

    def __init__(self, store: Store, clock: Clock, send: Callable[[Any], None]) -> None:
        self._store = store
        self._clock = clock
        self._send = send

    def fire_due(self, entries: Iterable[Any]) -> None:
        """Send every entry that is due and that no other beat has sent."""
        known = list(entries)
        if not known:
            return
        names = [entry.name for entry in known]
        (last_fires,) = self._store.batch(lambda pipe: pipe.hmget(self._key, names))
        for entry, last in zip(known, last_fires, strict=True):
            if self._is_due(entry, last) and self._claim(entry.name, last):
                self._send(entry)

    @property
    def _key(self) -> str:
        return self._store.shared_key("entries")

    def _is_due(self, entry: Any, last: bytes | None) -> bool:
        """An entry that has never been fired is due at once."""
        return last is None or bool(entry.schedule.is_due(datetime.fromisoformat(last.decode()))[0])

    def _claim(self, name: str, last: bytes | None) -> bool:
        now = self._clock.now().isoformat()
        return bool(self._store.run(_FIRE, [self._key], [name, last or b"", now]))
