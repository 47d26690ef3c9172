"""An answer that many ask for at once is made once."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable
from typing import Any

from scheduler_project.kernel.clock import monotonic


class Shared:
    """Answers by key, each kept for ``kept_s`` seconds; who asks meanwhile gets the same, or waits for it."""

    def __init__(self, kept_s: float) -> None:
        self._kept_s = kept_s
        self._lock = threading.Lock()
        self._turns: dict[Hashable, threading.Lock] = {}
        self._answers: dict[Hashable, tuple[float, Any]] = {}

    def get(self, key: Hashable, make: Callable[[], Any]) -> Any:
        """What ``make`` gives now or has given a moment ago. Its error goes to whoever asked."""
        with self._lock:
            self._forget()
            turn = self._turns.setdefault(key, threading.Lock())
        with turn:
            kept = self._answers.get(key)
            if kept is not None and monotonic() - kept[0] < self._kept_s:
                return kept[1]
            answer = make()
            self._answers[key] = monotonic(), answer
            return answer

    def drop(self, key: Hashable) -> None:
        """It is made anew for whoever asks next."""
        self._answers.pop(key, None)

    def _forget(self) -> None:
        now = monotonic()
        for key, turn in list(self._turns.items()):
            made_at, _ = self._answers.get(key, (0.0, None))
            if now - made_at >= self._kept_s and not turn.locked():
                self._turns.pop(key)
                self._answers.pop(key, None)
