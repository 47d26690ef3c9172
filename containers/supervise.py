"""One attempt from launch to outcome, on any runtime.

    launch ─ LaunchFailed ─────────────────────────► Outcome(START_FAILED | IMAGE_PULL_FAILED | …)
      │ └─── wanted_stop says CANCEL or DETACH ────► as below, with nothing started
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
from collections.abc import Iterator
from dataclasses import replace
from datetime import timedelta

from containers.launching import (
    ASK_EVERY_S,
    Detached,
    LaunchCancelled,
    Launching,
    NotLaunched,
    Stop,
    WantedStop,
)
from containers.outcome import Exit, Outcome, Reason, one_line, verdict
from containers.runtime import Container, LaunchFailed, LogWriter, Runtime, RuntimeUnavailable
from containers.spec import ContainerSpec
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import SYSTEM_CLOCK, Clock, monotonic

__all__ = ["Detached", "NotLaunched", "Stop", "WantedStop", "note", "run_to_end"]

logger = logging.getLogger(__name__)

FLUSH_S = 30.0
INCOMPLETE = "the log is incomplete"
LOST_FLUSH_S = 5.0


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
    started: where there is no container the outcome is LOST. Raises Detached when told to detach
    (NotLaunched where nothing had been started yet), and RuntimeUnavailable when the engine does
    not answer before there is a container.
    """
    outcome = _run_to_outcome(runtime, spec, log, wanted_stop, attach_only=attach_only, clock=clock)
    try:
        log.finish()
    except OSError as error:
        return _incomplete(outcome, str(error))
    return outcome


def _run_to_outcome(
    runtime: Runtime,
    spec: ContainerSpec,
    log: LogWriter,
    wanted_stop: WantedStop,
    *,
    attach_only: bool,
    clock: Clock,
) -> Outcome:
    launching = Launching(spec.start_timeout_s, wanted_stop, lambda line: note(log, line))
    try:
        container = runtime.attach(spec.name, launching) if attach_only else runtime.launch(spec, launching)
    except LaunchFailed as failure:
        return _not_run(failure.reason, one_line(failure.message), clock)
    except LaunchCancelled:
        return _not_run(Reason.CANCELLED, "cancelled before it had started", clock)
    if container is None:
        return _not_run(Reason.LOST, f"there is no container {spec.name} to attach to", clock)
    deadline = _deadline(container, spec, launching)
    return _follow_to_end(container, spec, log, wanted_stop, deadline)


def _not_run(reason: Reason, message: str, clock: Clock) -> Outcome:
    now = clock.now()
    return Outcome(reason, None, message, now, now)


def note(log: LogWriter, line: str) -> None:
    """A line for people, which is never worth a run."""
    try:
        log.note(line)
    except OSError as error:
        logger.warning("note_not_written", extra={"line": line, "error": str(error)})


def _follow_to_end(
    container: Container,
    spec: ContainerSpec,
    log: LogWriter,
    wanted_stop: WantedStop,
    deadline: float | None,
) -> Outcome:
    follower = container.follow(log)
    try:
        ended, cause = _watch(container, spec, wanted_stop, deadline)
    except BaseException:
        follower.cancel()
        log.close()
        raise
    # Where nobody knows how it ended, nobody may be there to send the rest.
    follower.finish(FLUSH_S if ended.exit_code is not None else LOST_FLUSH_S)
    outcome = verdict(ended, spec, container.started_at, cause)
    return _incomplete(outcome, follower.error) if follower.error else outcome


def _incomplete(outcome: Outcome, why: str) -> Outcome:
    if INCOMPLETE in outcome.message:
        return outcome
    return replace(outcome, message=one_line(f"{outcome.message}; {INCOMPLETE}: {why}"))


def _watch(
    container: Container, spec: ContainerSpec, wanted_stop: WantedStop, deadline: float | None
) -> tuple[Exit, Reason | None]:
    cause: Reason | None = None
    delays = exponential(cap=5.0)
    while True:
        try:
            ended = container.wait(ASK_EVERY_S)
            if ended is not None:
                return ended, cause or _late_cause(ended, wanted_stop)
            cause = _cause_to_stop(spec, wanted_stop(), deadline)
            if cause is not None:
                container.stop(spec.grace_s, lambda: _let_go_if_asked(spec, wanted_stop()))
            delays = exponential(cap=5.0)
        except RuntimeUnavailable as error:
            _wait_for_engine(spec, wanted_stop, delays, error)


def _deadline(container: Container, spec: ContainerSpec, launching: Launching) -> float | None:
    """On the monotonic clock; an attempt that is attached to keeps the deadline of its start.

    One whose start was seen from here has not run for longer than that, whatever clocks say.
    """
    if spec.timeout_s is None:
        return None
    now = monotonic()
    ran_for = max(container.now() - container.started_at, timedelta(0)).total_seconds()
    if launching.idle_at is not None:
        ran_for = min(ran_for, now - launching.idle_at)
    return now + spec.timeout_s - ran_for


def _let_go_if_asked(spec: ContainerSpec, wanted: Stop | None) -> None:
    if wanted is Stop.DETACH:
        raise Detached(f"{spec.name} is no longer watched from here")


def _cause_to_stop(spec: ContainerSpec, wanted: Stop | None, deadline: float | None) -> Reason | None:
    _let_go_if_asked(spec, wanted)
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
