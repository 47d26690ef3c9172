"""What a launch asks and tells while it lasts.

An image can take minutes to arrive, and a pod minutes to find its node. Meanwhile the run may be
cancelled, its worker may have to end, and its people want to see why nothing happens yet.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from enum import Enum

from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.errors import PunctualError

ASK_EVERY_S = 0.2


class Stop(Enum):
    """What the caller wants of a run that is being launched or watched."""

    CANCEL = "cancel"
    DETACH = "detach"


WantedStop = Callable[[], Stop | None]


class Detached(PunctualError):
    """The run is no longer watched from here; its container goes on."""


class NotLaunched(Detached):
    """The watcher has to end, and nothing was started: any other may launch the run."""


class LaunchCancelled(PunctualError):
    """The run was cancelled before it had started; nothing is left of it."""


class Launching:
    """One launch under way; a runtime calls ``check`` and ``wait`` wherever a launch can take long.

    ``wanted_stop`` is asked every 0.2 s and must not block. ``tell`` gets whole lines for the run's
    log; a runtime sends few (one every few seconds at most, and each only once). ``timeout_s``
    counts from now. ``idle_at``: when it was last known not to have started, on the monotonic clock;
    None where it was found started.
    """

    def __init__(
        self,
        timeout_s: float,
        wanted_stop: WantedStop = lambda: None,
        tell: Callable[[str], object] = str,
    ) -> None:
        self._deadline = monotonic() + timeout_s
        self._wanted_stop = wanted_stop
        self.timeout_s = timeout_s
        self.tell = tell
        self.idle_at: float | None = None

    @property
    def left_s(self) -> float:
        """Seconds until the start has taken too long; 0 where it has."""
        return max(0.0, self._deadline - monotonic())

    def not_started(self) -> None:
        """A runtime says that nothing of it has run yet."""
        self.idle_at = monotonic()

    def check(self) -> None:
        """Raise LaunchCancelled or NotLaunched where the launch is not wanted any more.

        The runtime lets them through, and first removes what it has made but not started.
        """
        wanted = self._wanted_stop()
        if wanted is Stop.CANCEL:
            raise LaunchCancelled
        if wanted is Stop.DETACH:
            raise NotLaunched

    def wait(self, seconds: float, done: threading.Event | None = None) -> bool:
        """Sleep that long (never beyond the time for the start) or until ``done``: whether it is.

        Raises as ``check`` does, within 0.2 s.
        """
        done = done or threading.Event()
        until = min(monotonic() + seconds, self._deadline)
        while not done.is_set():
            self.check()
            left = until - monotonic()
            if left <= 0:
                return False
            done.wait(min(left, ASK_EVERY_S))
        return True
