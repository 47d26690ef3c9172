"""One attempt from launch to outcome, on any runtime.

    launch ─ LaunchFailed ─────────────────────────► Outcome(START_FAILED | IMAGE_PULL_FAILED)
      │
      ▼
    watch ── it ends by itself ────────────────────► Outcome(SUCCEEDED | FAILED | OUT_OF_MEMORY | …)
      │ ├─── time limit, counted from its start ───► stop ► Outcome(TIMED_OUT)
      │ ├─── wanted_stop says CANCEL ──────────────► stop ► Outcome(CANCELLED)
      │ └─── wanted_stop says DETACH ──────────────► Detached is raised; the container goes on
      └ the engine does not answer: asked again with growing pauses, until it does

Nothing is removed here: the container is forgotten by the caller once the outcome is safe.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import timedelta
from enum import Enum

from containers.outcome import Exit, Outcome, Reason, one_line, verdict
from containers.runtime import Container, LaunchFailed, LogWriter, Runtime, RuntimeUnavailable
from containers.spec import ContainerSpec
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import SYSTEM_CLOCK, Clock, monotonic
from scheduler_project.kernel.errors import PunctualError

logger = logging.getLogger(__name__)

POLL_S = 0.2
FLUSH_S = 30.0


class Stop(Enum):
    """What the caller wants of a run that is being watched."""

    CANCEL = "cancel"
    DETACH = "detach"


class Detached(PunctualError):
    """The run is no longer watched from here; its container goes on."""


WantedStop = Callable[[], Stop | None]


def run_to_end(
    runtime: Runtime,
    spec: ContainerSpec,
    log: LogWriter,
    wanted_stop: WantedStop,
    *,
    attach_only: bool = False,
    clock: Clock = SYSTEM_CLOCK,
) -> Outcome:
    """Launch (or attach to) the container of ``spec``, watch it to its end, and say how it ended.

    ``wanted_stop`` is asked about every 0.2 s and must not block. With ``attach_only`` nothing is
    started: where there is no container the outcome is LOST. Raises Detached when told to
    detach, and RuntimeUnavailable when the engine does not answer before there is a container.
    """
    try:
        container = runtime.attach(spec.name) if attach_only else runtime.launch(spec)
    except LaunchFailed as failure:
        now = clock.now()
        return Outcome(failure.reason, None, one_line(failure.message), now, now)
    if container is None:
        now = clock.now()
        return Outcome(Reason.LOST, None, f"there is no container {spec.name} to attach to", now, now)
    return _follow_to_end(container, spec, log, wanted_stop, clock)


def _follow_to_end(
    container: Container, spec: ContainerSpec, log: LogWriter, wanted_stop: WantedStop, clock: Clock
) -> Outcome:
    started_at = container.started_at
    follower = container.follow(log)
    try:
        ended, cause = _watch(container, spec, wanted_stop, clock)
    except BaseException:
        follower.cancel()
        log.close()
        raise
    follower.finish(FLUSH_S)
    log.close()
    outcome = verdict(ended, spec, started_at, cause)
    if follower.error:
        return replace(
            outcome, message=one_line(f"{outcome.message}; the log is incomplete: {follower.error}")
        )
    return outcome


def _watch(
    container: Container, spec: ContainerSpec, wanted_stop: WantedStop, clock: Clock
) -> tuple[Exit, Reason | None]:
    deadline = _deadline(container, spec, clock)
    cause: Reason | None = None
    delays = exponential(cap=5.0)
    while True:
        try:
            ended = container.wait(POLL_S)
            if ended is not None:
                return ended, cause or _late_cause(ended, wanted_stop)
            cause = _cause_to_stop(spec, wanted_stop(), deadline)
            if cause is not None:
                container.stop(spec.grace_s)
            delays = exponential(cap=5.0)
        except RuntimeUnavailable as error:
            _wait_for_engine(spec, wanted_stop, delays, error)


def _deadline(container: Container, spec: ContainerSpec, clock: Clock) -> float | None:
    """On the monotonic clock; an attempt that is attached to keeps the deadline of its start."""
    if spec.timeout_s is None:
        return None
    ran_for = max(clock.now() - container.started_at, timedelta(0)).total_seconds()
    return monotonic() + spec.timeout_s - ran_for


def _cause_to_stop(spec: ContainerSpec, wanted: Stop | None, deadline: float | None) -> Reason | None:
    if wanted is Stop.DETACH:
        raise Detached(f"{spec.name} is no longer watched from here")
    if wanted is Stop.CANCEL:
        return Reason.CANCELLED
    if deadline is not None and monotonic() >= deadline:
        return Reason.TIMED_OUT
    return None


def _late_cause(ended: Exit, wanted_stop: WantedStop) -> Reason | None:
    """A run that is found stopped although it was to be cancelled: an earlier watcher stopped it."""
    if ended.exit_code != 0 and not ended.start_error and wanted_stop() is Stop.CANCEL:
        return Reason.CANCELLED
    return None


def _wait_for_engine(
    spec: ContainerSpec, wanted_stop: WantedStop, delays: Iterator[float], error: RuntimeUnavailable
) -> None:
    delay = next(delays)
    logger.warning(
        "runtime_unavailable", extra={"container": spec.name, "error": error.message, "delay_s": delay}
    )
    if wanted_stop() is Stop.DETACH:
        raise Detached(f"{spec.name} is no longer watched from here") from error
    threading.Event().wait(delay)
