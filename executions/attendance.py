"""Which recorders and auditors are there, as they say it themselves, in Redis.

    {consumers}:seen  ZSET  queue and name -> when it was last there, in ms by Redis' clock

RabbitMQ knows who takes from a queue; a broker that is Redis does not. Nothing depends on it.
"""

from __future__ import annotations

import os
import socket
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from executions.bus.depths import QueueFacts
from executions.bus.topology import AUDITOR, RECORDER
from executions.presence import FORGOTTEN, LASTS
from executions.store import Store, StoreUnavailable
from scheduler_project.kernel.loop import BackgroundService

PERIOD_S = 2.0
CLOSE_WITHIN_S = 1.0
ATTENDED = (RECORDER, AUDITOR)
_BETWEEN = " "


class Attendance:
    """A consumer of ``queue`` says that it is there, until it is closed."""

    def __init__(self, store: Store, queue: str) -> None:
        self._store = store
        self._member = _BETWEEN.join((queue, f"{socket.gethostname()}:{os.getpid()}"))
        self._service = BackgroundService("attendance", self._attend)
        self._service.start()

    def _attend(self) -> float:
        now = self._store.now_ms()

        def fill(pipe: Any) -> None:
            pipe.zadd(_seen(self._store), {self._member: now})
            pipe.zremrangebyscore(_seen(self._store), "-inf", now - FORGOTTEN.total_seconds() * 1000)

        self._store.batch(fill)
        return PERIOD_S

    def close(self) -> None:
        self._service.stop(CLOSE_WITHIN_S)
        try:
            self._store.batch(lambda pipe: pipe.zrem(_seen(self._store), self._member))
        except StoreUnavailable:
            return  # it is not seen for long


def attending(store: Store) -> dict[str, list[str]]:
    """Those that were there within the last seconds, by queue."""
    since = store.now_ms() - LASTS.total_seconds() * 1000
    (members,) = store.batch(lambda pipe: pipe.zrangebyscore(_seen(store), since, "+inf"))
    found: dict[str, list[str]] = {queue: [] for queue in ATTENDED}
    for queue, _, name in (member.decode().partition(_BETWEEN) for member in sorted(members)):
        found.setdefault(queue, []).append(name)
    return found


def attended(
    facts: Mapping[str, QueueFacts], present: Mapping[str, list[str]] | None
) -> dict[str, QueueFacts]:
    """The facts, with the number of consumers where the broker does not know it and they say it themselves.

    ``present``: None where nobody knows.
    """
    return {
        queue: replace(each, consumers=len(present[queue]))
        if each.consumers is None and present is not None and queue in present
        else each
        for queue, each in facts.items()
    }


def _seen(store: Store) -> str:
    return store.tagged_key("consumers", "seen")
