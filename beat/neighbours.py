"""Looks after the shards of other beats: where the head of one is late, its runs are taken from here too.

The owner may be dead, stalled, cut off from the broker or buried in work: whichever it is, nobody waits for
the end of its lease. Two beats that take from one shard do no harm, as a pop is atomic: each run goes to one
of them. The shard stays its owner's; when its head is on time again, it is left alone.
"""

from __future__ import annotations

import logging
from datetime import timedelta

from beat.ownership import Ownership
from executions.window import Window
from scheduler_project.kernel.clock import monotonic

logger = logging.getLogger(__name__)

PERIOD_S = 0.5
LATE = timedelta(seconds=1)


class Neighbours:
    """``run_once`` is called on a timer of its own, ``reached`` from any thread."""

    def __init__(self, window: Window, ownership: Ownership, shards: int) -> None:
        self._window = window
        self._ownership = ownership
        self._shards = shards
        self._seen: tuple[frozenset[int], float] = frozenset(), 0.0

    def run_once(self) -> float:
        """Look at every shard that is not ours; the seconds until the next look."""
        asked_at = monotonic()
        others = sorted(set(range(self._shards)) - set(self._ownership.owned()))
        late = frozenset(self._window.late(others, LATE))
        if late - self._seen[0]:
            logger.warning("late_shards_helped", extra={"shards": len(late)})
        self._seen = late, asked_at + 2 * PERIOD_S
        return PERIOD_S

    def reached(self) -> list[int]:
        """The shards that this beat owns, and those of others that are late."""
        late, until = self._seen
        return sorted({*self._ownership.owned(), *(late if monotonic() < until else ())})
