"""Dead letters for people: looked at, replayed and discarded, by those who may, and on record.

They are of all teams and of none: who may look at them or settle them has a permission of Django's. One at a
time has them in hand, by a lock of the database: so what somebody chose and does not find is gone for good,
and what two choose at once goes once.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from enum import StrEnum

from django.conf import settings
from django.db import OperationalError, connection, transaction
from psycopg.errors import LockNotAvailable

from access.audit import About, note
from access.levels import Level
from access.policy import User, has_permission, require_permission
from executions.bus.connection import BusUnavailable
from executions.bus.dead_letters import Letter
from executions.bus.dead_queue import WITHIN_S, DeadQueue, Held, NotReplayable, dead_queue
from executions.bus.depths import queue_facts
from executions.bus.topology import DEAD
from executions.letter_texts import reason_text
from executions.models import DeadLetter
from scheduler_project.kernel.errors import RetryableError
from scheduler_project.kernel.sharing import Shared
from scheduler_project.kernel.texts import escaped_lines

logger = logging.getLogger(__name__)

MOST = 100
VIEW, SETTLE = "executions.view_deadletter", "executions.settle_deadletter"
COUNTED_WITHIN_S = 0.3
_counted = Shared(5.0)
_LOCK = 0x70756E6374_01
_LOCK_WITHIN = "5s"


class InHand(RetryableError):
    """Somebody else has the dead letters in hand; try again in a few seconds."""


class Action(StrEnum):
    REPLAY = "replay"
    DISCARD = "discard"


class Outcome(StrEnum):
    """What became of one that was chosen. NOT_THERE: others have settled it. LEFT: it is where it was."""

    REPLAYED = "replayed"
    DISCARDED = "discarded"
    NOT_THERE = "not_there"
    LEFT = "left"
    UNKNOWN = "unknown"


_DONE = {Action.REPLAY: Outcome.REPLAYED, Action.DISCARD: Outcome.DISCARDED}
DONE = frozenset(_DONE.values())
_SETTLED_BEFORE = "It is not there any more: somebody else has replayed or discarded it."
_NOT_REACHED = "The broker stopped answering before its turn came."


@dataclass(frozen=True, slots=True)
class Listing:
    """The oldest ``letters``; ``more``: there are others behind them."""

    letters: list[Letter]
    more: bool


@dataclass(frozen=True, slots=True)
class Settled:
    """``detail``: why it was not done, where it was not; ``letter``: None where it was not found."""

    id: str
    outcome: Outcome
    detail: str = ""
    letter: Letter | None = None


def may_look(user: User) -> bool:
    return has_permission(user, VIEW, Level.VIEW)


def may_settle(user: User) -> bool:
    return has_permission(user, SETTLE)


def waiting() -> int | None:
    """How many there are, or were a moment ago; None where the broker does not answer at once."""
    found: int | None = _counted.get(settings.BROKER_URL, _count)
    return found


def _count() -> int | None:
    try:
        return queue_facts((DEAD,), COUNTED_WITHIN_S)[DEAD].messages
    except BusUnavailable:
        return None


def look(user: User, most: int = MOST, within_s: float = WITHIN_S) -> Listing:
    """At most ``most`` of them, the oldest first; they stay. Forbidden, BusUnavailable, InHand."""
    require_permission(user, VIEW, Level.VIEW)
    with _alone(), dead_queue(most, within_s) as found:
        return Listing(found.letters, found.more)


def settle(ids: Iterable[str], action: Action, user: User, most: int = MOST) -> list[Settled]:
    """Replay or discard those of the oldest ``most`` that ``ids`` name, each on record; what became of each.

    Where the broker fails in between, what was done is among the answers. Forbidden, InHand, BusUnavailable:
    nothing was done.
    """
    require_permission(user, SETTLE)
    wanted = Counter(ids)
    with _alone(), dead_queue(most) as queue:
        chosen = list(_chosen(queue.held, wanted))
        answers = list(_settle_each(queue, chosen, action, user))
    _counted.drop(settings.BROKER_URL)
    return [*answers, *(Settled(id, Outcome.NOT_THERE, _SETTLED_BEFORE) for id in wanted.elements())]


def _chosen(held: Sequence[Held], wanted: Counter[str]) -> Iterator[Held]:
    """Each as often as it was named; ``wanted`` keeps those that are not there."""
    for item in held:
        if wanted[item.letter.id] > 0:
            wanted[item.letter.id] -= 1
            yield item


def _settle_each(queue: DeadQueue, chosen: list[Held], action: Action, user: User) -> Iterator[Settled]:
    away = False
    for item in chosen:
        letter = item.letter
        if away:
            yield Settled(letter.id, Outcome.LEFT, _NOT_REACHED, letter)
            continue
        try:
            _settle_one(queue, item, action, user)
        except NotReplayable as error:
            yield Settled(letter.id, Outcome.LEFT, error.message, letter)
        except BusUnavailable as error:
            away = True
            yield Settled(
                letter.id, Outcome.UNKNOWN, f"Whether it was done is not known: {error.message}.", letter
            )
        else:
            yield Settled(letter.id, _DONE[action], "", letter)


@transaction.atomic
def _settle_one(queue: DeadQueue, item: Held, action: Action, user: User) -> None:
    letter = item.letter
    facts = {"queue": letter.queue, "reason": reason_text(letter), "buriedAt": letter.buried_at}
    about = About(subject=f"dead letter of {letter.queue or 'no queue'}")
    note(DeadLetter(id=letter.id), user, str(_DONE[action]), after=facts, about=about)
    if action is Action.REPLAY:
        queue.replay(item)
    else:
        queue.discard(item)
    logger.info(
        "dead_letter_settled", extra={"letter": letter.id, "queue": letter.queue, "outcome": _DONE[action]}
    )


@contextmanager
def _alone() -> Iterator[None]:
    with transaction.atomic():
        with connection.cursor() as cursor:
            cursor.execute(f"SET LOCAL lock_timeout = '{_LOCK_WITHIN}'")
            try:
                cursor.execute("SELECT pg_advisory_xact_lock(%s)", [_LOCK])
            except OperationalError as error:
                if isinstance(error.__cause__, LockNotAvailable):
                    raise InHand from error
                raise
        yield


def plain(text: str) -> str:
    return escaped_lines(text)
