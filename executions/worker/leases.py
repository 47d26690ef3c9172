"""Keeping the claims of one worker alive, and hearing from them what is wanted of a run."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection

from executions.claims import Attempt, Claims, Renewal
from executions.store import StoreUnavailable
from scheduler_project.kernel.loop import BackgroundService
from scheduler_project.kernel.pulse import WITHIN_S

logger = logging.getLogger(__name__)

PERIOD_S = 0.5


class LeaseKeeper:
    """Renews every held claim twice a second, in one round trip; that is also how fast a cancel is heard.

    Where Redis is away, the runs go on: no other worker can claim them either.
    """

    def __init__(self, claims: Claims, renew_places: Callable[[], None]) -> None:
        self._claims = claims
        self._renew_places = renew_places
        self._lock = threading.Lock()
        self._answers: dict[Attempt, Renewal] = {}
        self._reserved: set[Attempt] = set()
        self._ending: dict[Attempt, Callable[[], None]] = {}
        self._renewals: list[frozenset[Attempt]] = []  # on their way
        self._renewed = threading.Condition(self._lock)
        self._service = BackgroundService("leases", self._renew, within_s=WITHIN_S)
        self._service.start()

    def reserve(self, attempt: Attempt) -> bool:
        """Before it is claimed; False where it is held or being claimed here already."""
        with self._lock:
            if attempt in self._reserved or attempt in self._answers:
                return False
            self._reserved.add(attempt)
            return True

    def hold(self, attempt: Attempt) -> None:
        with self._lock:
            self._reserved.discard(attempt)
            self._answers[attempt] = Renewal.HELD

    def drop(self, attempt: Attempt) -> None:
        with self._lock:
            self._reserved.discard(attempt)
            self._answers.pop(attempt, None)

    def end(self, attempt: Attempt, release: Callable[[], None]) -> bool:
        """Renew it no more and ``release`` its claim: where Redis is away (False), as soon as it answers.

        Until then this worker takes no second delivery of it. A renewal that is on its way would make the
        claim anew, for a whole lease: it is awaited.
        """
        with self._lock:
            self._answers.pop(attempt, None)
            self._reserved.add(attempt)
            self._renewed.wait_for(lambda: all(attempt not in renewal for renewal in self._renewals))
            self._ending[attempt] = release
        return self._release(attempt)

    def answer(self, attempt: Attempt) -> Renewal:
        """What the last renewal of a held claim said."""
        with self._lock:
            return self._answers.get(attempt, Renewal.FENCED)

    def renewed(self, attempt: Attempt) -> Renewal:
        """What a renewal of this one says at this moment; the last answer where Redis is away."""
        self._ask([attempt])
        return self.answer(attempt)

    def close(self) -> None:
        self._service.stop()

    def _release(self, attempt: Attempt) -> bool:
        release = self._ending.get(attempt)
        try:
            if release is not None:
                release()
        except StoreUnavailable:
            return False
        with self._lock:
            self._ending.pop(attempt, None)
            self._reserved.discard(attempt)
        return True

    def _renew(self) -> float:
        for attempt in list(self._ending):
            if not self._release(attempt):
                break
        with self._lock:
            held = list(self._answers)
        if self._ask(held):
            self._keep_places()
        return PERIOD_S

    def _keep_places(self) -> None:
        try:
            self._renew_places()
        except StoreUnavailable as error:
            logger.warning("places_not_renewed", extra={"error": error.message})

    def _ask(self, wanted: Collection[Attempt]) -> bool:
        """Renew those of ``wanted`` that are (still) held; whether Redis has answered."""
        with self._lock:
            held = [attempt for attempt in wanted if attempt in self._answers]
            renewal = frozenset(held)
            self._renewals.append(renewal)
        try:
            answers = self._claims.renew(held)
        except StoreUnavailable as error:
            logger.warning("leases_not_renewed", extra={"runs": len(held), "error": error.message})
            return False
        finally:
            with self._lock:
                self._renewals.remove(renewal)
                self._renewed.notify_all()
        with self._lock:
            for attempt, answer in zip(held, answers, strict=True):
                if attempt in self._answers:
                    self._answers[attempt] = answer
        return True
