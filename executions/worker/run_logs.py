"""The logs of a worker's runs: written to its disk, shipped while they grow, archived when they are whole."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from containers.logs import LogWriter
from executions.claims import Attempt
from executions.log_archive import log_archive
from executions.log_places import live_logs, log_store
from executions.store import Store
from executions.worker.log_keeping import LogKeeper
from executions.worker.log_shipping import LogShipper


class RunLogs:
    """``store``: the logs on this worker's disk."""

    def __init__(self, redis: Store) -> None:
        self.store = log_store()
        self._shipper = LogShipper(live_logs(redis)).start()
        self._keeper = LogKeeper(self.store, log_archive(), self._shipper.forget).start()

    @contextmanager
    def shipping(self, attempt: Attempt, log: LogWriter) -> Iterator[None]:
        """Ship what ``log`` stores meanwhile."""
        with self._shipper.following(attempt, log):
            yield

    def keep(self, attempt: Attempt) -> None:
        """The attempt has ended: its log goes to the archive, soon."""
        self._keeper.put(attempt)

    def close(self) -> None:
        self._keeper.close()
        self._shipper.close()
