"""Dead letters for tests."""

from __future__ import annotations

from typing import Any

from kombu import Queue

from executions.bus.dead_letters import Letter
from executions.bus.dead_queue import dead_queue
from executions.bus.publishing import ConfirmedPublisher
from executions.bus.topology import DEAD, RECORDER, dead_letter_queue, event_queue

REASON = "not a message of events"
SINCE = "2026-11-30T06:27:02+00:00"


def bury(*bodies: bytes, declared: Queue | None = None, **headers: Any) -> list[Letter]:
    """As a recorder that cannot read them; the oldest letters of the queue, in their order."""
    letters = ConfirmedPublisher(declared or dead_letter_queue(), event_queue(RECORDER))
    for body in bodies:
        given = {"queue": RECORDER, "reason": REASON, "buried_at": SINCE, **headers}
        letters.send(body, exchange="", routing_key=DEAD, headers=given, content_type="text/plain")
    letters.close()
    return buried()


def buried() -> list[Letter]:
    """What the queue holds, as far as somebody sees it who looks once."""
    with dead_queue(1000) as found:
        return sorted(found.letters, key=lambda letter: letter.body)
