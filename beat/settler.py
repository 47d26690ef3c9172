"""The settler: changes of jobs that were made past the services, or whose service could not carry them out.

A trigger of the database tells of each change (NOTIFY jobs_changed); the settler listens on a
connection of its own and settles what is unsettled in the shards of its beat. It looks by itself
after each connect and every few seconds, so what nobody could tell it is not lost. Any number of
beats may do this: the job's row is locked while it is settled, and settling again changes nothing.
"""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any
from uuid import UUID

import psycopg
from django.db import InterfaceError, OperationalError, connection

from beat.ownership import Ownership
from executions.database import DatabaseUnavailable, database_available
from executions.redirection import RunBusy
from jobs.changes import PAGE, settle, unsettled
from scheduler_project.kernel.clock import Clock, monotonic
from scheduler_project.kernel.errors import RetryableError

logger = logging.getLogger(__name__)

PERIOD_S = 2.0
LISTEN_S = 0.5  # as long as a stop may have to wait
SERVICE_S = 0.05  # the service that makes a change carries it out as well: give it that long


class Settler:
    def __init__(self, ownership: Ownership, clock: Clock) -> None:
        self._ownership = ownership
        self._clock = clock
        self._listener: Any = None
        self._look_at = 0.0

    def run_once(self) -> float:
        """Wait a while for news, and settle what there is; the seconds until the next time."""
        if self._told() or monotonic() >= self._look_at:
            more = self._settle_all()
            self._look_at = monotonic() + (0.0 if more else PERIOD_S)
        return 0.0

    def close(self) -> None:
        listener, self._listener = self._listener, None
        if listener is not None:
            with suppress(psycopg.Error):
                listener.close()

    def _told(self) -> bool:
        """Whether a job has changed; of what happened before it listens nobody can tell it."""
        try:
            if self._listener is None:
                self._listen()
                return True
            if not list(self._listener.notifies(timeout=LISTEN_S, stop_after=1)):
                return False
            list(self._listener.notifies(timeout=SERVICE_S))
            return True
        except (psycopg.OperationalError, psycopg.InterfaceError) as error:
            self.close()
            raise DatabaseUnavailable(f"PostgreSQL does not answer: {error} (DATABASE_URL)") from error

    def _listen(self) -> None:
        listener = connection.get_new_connection(connection.get_connection_params())
        self._listener = listener
        listener.autocommit = True
        listener.execute("LISTEN jobs_changed")

    def _settle_all(self) -> bool:
        """Settle what is unsettled in the owned shards; whether there may be more."""
        shards = self._ownership.owned()
        if not shards:
            return False
        with database_available():
            found = unsettled(shards, self._clock.now())
            for job_id in found:
                self._settle(job_id)
        return len(found) == PAGE

    def _settle(self, job_id: UUID) -> None:
        """One job that cannot be settled must not keep the others from it."""
        try:
            settle(job_id, self._clock.now())
        except RunBusy as error:
            logger.info("settling_postponed", extra={"job": job_id, "error": error.message})
        except (RetryableError, OperationalError, InterfaceError):
            raise
        except Exception:
            logger.exception("settling_failed", extra={"job": job_id})
