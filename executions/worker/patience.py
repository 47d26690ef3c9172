"""Asking Redis until it answers, for as long as a delivery may be kept."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from typing import TypeVar

from executions.store import StoreUnavailable
from executions.worker.assignments import Assignment
from executions.worker.attempts import Stopping, who
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import monotonic

logger = logging.getLogger(__name__)

CLAIM_WITHIN_S = 5.0
_T = TypeVar("_T")


def patiently(stopping: threading.Event, given: Assignment, call: Callable[[], _T]) -> _T:
    """``call`` Redis until it answers; Stopping where that takes long: another worker may reach it."""
    give_up = monotonic() + CLAIM_WITHIN_S
    for delay in exponential(cap=2.0):
        if stopping.is_set() or monotonic() > give_up:
            raise Stopping
        try:
            return call()
        except StoreUnavailable as error:
            logger.warning("claim_waits", extra={**who(given), "error": error.message})
            stopping.wait(delay)
    raise Stopping
