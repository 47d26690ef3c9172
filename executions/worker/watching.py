"""A run in the hands of its runtime: waited for where that is silent, left where this worker has to end."""

from __future__ import annotations

import logging
import threading
from collections.abc import Sequence
from dataclasses import replace

from django.conf import settings

from containers.launching import WantedStop
from containers.logs.masking import masked
from containers.outcome import Outcome
from containers.runtime import Runtime, RuntimeUnavailable
from containers.secrets import SecretSource, SecretsUnavailable
from containers.spec import container_name
from containers.supervise import Detached, Stop, run_to_end
from executions.entries import Flag
from executions.worker.assignments import Assignment
from executions.worker.attempts import Held, who
from executions.worker.preparing import Prepared, with_secrets
from executions.worker.run_logs import RunLogs
from scheduler_project.kernel.abandoning import Abandoned, unless_stopping
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import PunctualError

logger = logging.getLogger(__name__)

LEAVE_WITHIN_S = 3.0
FORGET_WITHIN_S = 1.0
"""What a worker that ends leaves behind then is the reaper's."""


class Watching:
    """``secrets``: where they are looked for, in that order; ``stopping``: this worker is going to end."""

    def __init__(
        self, runtime: Runtime, logs: RunLogs, secrets: Sequence[SecretSource], stopping: threading.Event
    ) -> None:
        self._runtime = runtime
        self._logs = logs
        self._secrets = secrets
        self._stopping = stopping

    def to_end(self, held: Held, prepared: Prepared, wanted_stop: WantedStop) -> Outcome:
        """A worker that has to end does not wait for an engine that is silent: another looks at the run."""
        try:
            return unless_stopping(
                self._stopping, LEAVE_WITHIN_S, lambda: self._to_end(held, prepared, wanted_stop)
            )
        except Abandoned as error:
            logger.warning("runtime_silent", extra={**who(held.given), "error": error.message})
            raise Detached from error

    def _to_end(self, held: Held, prepared: Prepared, wanted_stop: WantedStop) -> Outcome:
        """Waits for an engine, or a place of secrets, that does not answer as long as a start may take.

        For what has begun no less than PUNCTUAL_ENGINE_WAIT: given up, it would run twice.
        """
        given = held.given
        patience_s = prepared.container.start_timeout_s
        if Flag.REATTACH in given.flags:
            patience_s = max(patience_s, settings.PUNCTUAL_ENGINE_WAIT.total_seconds())
        give_up = monotonic() + patience_s
        for delay in exponential(cap=5.0):
            try:
                container, log = with_secrets(given, prepared, self._secrets, self._logs.store)
                with self._logs.shipping(held.attempt, log):
                    outcome = run_to_end(
                        self._runtime,
                        container,
                        log,
                        wanted_stop,
                        attach_only=Flag.REATTACH in given.flags,
                    )
                return replace(outcome, message=masked(outcome.message, container.hidden()))
            except (RuntimeUnavailable, SecretsUnavailable) as error:
                wanted = wanted_stop()
                if wanted is Stop.DETACH:
                    raise Detached from error
                if wanted is Stop.CANCEL or monotonic() >= give_up:
                    raise
                logger.warning("runtime_awaited", extra={**who(given), "error": error.message})
                self._stopping.wait(delay)
        raise Detached

    def forget(self, given: Assignment) -> None:
        try:
            name = container_name(given.execution_id, given.attempt)
            unless_stopping(self._stopping, FORGET_WITHIN_S, lambda: self._runtime.forget(name))
        except (PunctualError, OSError) as error:
            logger.warning("container_left", extra={**who(given), "error": str(error)})
