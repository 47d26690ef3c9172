"""The rows of the executions that are being followed in this process: read together for all followers.

However many follow, the database is asked once in FRESH_S, over a connection that is given back at once.
"""

from __future__ import annotations

import logging
import threading
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from uuid import UUID

from django.db import InterfaceError, OperationalError, connection

from executions.models import Execution
from scheduler_project.kernel.clock import monotonic

logger = logging.getLogger(__name__)

FRESH_S = 0.5


class FollowedRows:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._followed: Counter[UUID] = Counter()
        self._rows: dict[UUID, Execution] = {}
        self._read_at = 0.0

    @contextmanager
    def following(self, execution: Execution) -> Iterator[None]:
        """Keep ``execution`` among those that are read."""
        with self._lock:
            self._followed[execution.id] += 1
            self._rows.setdefault(execution.id, execution)
        try:
            yield
        finally:
            with self._lock:
                self._followed[execution.id] -= 1
                if not self._followed[execution.id]:
                    del self._followed[execution.id]
                    self._rows.pop(execution.id, None)

    def row(self, execution_id: UUID) -> Execution | None:
        """The row of one that is followed, at most FRESH_S old; None where it is not there any more.

        While the database does not answer it is as it was seen last.
        """
        with self._lock:
            if monotonic() - self._read_at >= FRESH_S:
                self._read()
                self._read_at = monotonic()
            return self._rows.get(execution_id)

    def _read(self) -> None:
        ids = sorted(self._followed)
        found = Execution.objects.filter(id__in=ids, id__gte=ids[0], id__lte=ids[-1])
        try:
            self._rows = {execution.id: execution for execution in found}
        except (OperationalError, InterfaceError) as error:
            logger.warning("followed_runs_not_read", extra={"error": str(error).strip()})
        finally:
            give_connection_back()


def give_connection_back() -> None:
    """Whoever goes on to wait holds none; within a transaction it is the caller's."""
    if not connection.in_atomic_block:
        connection.close()
