"""The loop around every service: dull on purpose.

A service has ``run_once``, which does one unit of work and returns the seconds to wait
before the next (0 where more is waiting already). Signal handlers only set an event.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.errors import RetryableError
from scheduler_project.kernel.pulse import PULSE

logger = logging.getLogger(__name__)

RunOnce = Callable[[], float]
LONGEST_S = 2.0


def run_until(stop: threading.Event, run_once: RunOnce, *, name: str, within_s: float | None = None) -> None:
    """Call ``run_once`` until ``stop`` is set, whatever it raises: a service that is gone helps nobody.

    Each failure is logged and tried again with back-off, of at most LONGEST_S, so that what was away is
    used soon after its return; what is no RetryableError is a fault of ours, and is logged as an error with
    its traceback. ``within_s``: a round that takes longer hangs, and with it this process is taken for dead
    (kernel/pulse.py); None: nobody looks.
    """
    delays = exponential(cap=LONGEST_S)
    while not stop.is_set():
        if within_s is not None:
            PULSE.expect(name, within_s)
        try:
            delay = run_once()
            delays = exponential(cap=LONGEST_S)
        except RetryableError as error:
            delay = next(delays)
            logger.warning("service_retry", extra={"service": name, "error": error.message, "delay_s": delay})
        except Exception:
            delay = next(delays)
            logger.exception("service_failed", extra={"service": name, "delay_s": delay})
        if within_s is not None:
            PULSE.expect(name, within_s, pause_s=delay)
        stop.wait(delay)
    PULSE.excuse(name)


class BackgroundService:
    """``run_once`` in a thread of its own, until ``stop``."""

    def __init__(self, name: str, run_once: RunOnce, *, within_s: float | None = None) -> None:
        self._stop = threading.Event()
        self._thread = threading.Thread(
            target=run_until,
            args=(self._stop, run_once),
            kwargs={"name": name, "within_s": within_s},
            name=name,
            daemon=True,
        )

    def start(self) -> None:
        self._thread.start()

    def stop(self, timeout: float = 5.0) -> bool:
        """Ask it to stop and wait up to ``timeout`` seconds; says whether it has."""
        self._stop.set()
        self._thread.join(timeout)
        return not self._thread.is_alive()


def stop_on_signals(stop: threading.Event) -> None:
    """SIGTERM and SIGINT set ``stop``; a second one ends the process at once, whatever it waits for."""

    def handle(number: int, _frame: FrameType | None) -> None:
        if stop.is_set():
            signal.signal(number, signal.SIG_DFL)
            os.kill(os.getpid(), number)
        stop.set()

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, handle)
