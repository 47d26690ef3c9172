"""How long a pod may take to start, by what it waits for."""

from __future__ import annotations

from containers.kubernetes.options import Patience
from containers.kubernetes.reading import Pending
from containers.launching import Launching
from containers.outcome import Reason
from containers.runtime import LaunchFailed
from scheduler_project.kernel.clock import monotonic

TELL_AFTER_S = 3.0


class Start:
    """One start that is watched; a trouble that goes away for a moment counts from anew."""

    def __init__(self, patience: Patience, launching: Launching) -> None:
        self._patience = patience
        self._launching = launching
        self._reason: Reason | None = None
        self._since = 0.0
        self._begun = monotonic()
        self._told = ""

    def pending(self, seen: Pending) -> None:
        """Take note of what it waits for. Raises LaunchFailed where that has lasted too long."""
        self._tell(seen)
        self._check_trouble(seen)
        if self._launching.left_s <= 0:
            trouble = seen.trouble
            raise LaunchFailed(
                Reason.START_TIMED_OUT if trouble is None else trouble.reason,
                f"it did not start within {self._launching.timeout_s:g} s: {seen.what}",
            )

    def _tell(self, seen: Pending) -> None:
        """Each trouble once, and what a pod usually waits for only where that takes a while."""
        kind = seen.what if seen.trouble is None else str(seen.trouble.reason)
        is_news = seen.trouble is not None or monotonic() - self._begun >= TELL_AFTER_S
        if is_news and kind != self._told:
            self._told = kind
            self._launching.tell(seen.what)

    def _check_trouble(self, seen: Pending) -> None:
        trouble = seen.trouble
        reason = None if trouble is None else trouble.reason
        if reason is not self._reason:
            self._reason, self._since = reason, monotonic()
        if trouble is None:
            return
        limit = 0.0 if trouble.final else self._patience.with_reason(trouble.reason)
        if monotonic() - self._since >= limit:
            raise LaunchFailed(trouble.reason, trouble.message)
