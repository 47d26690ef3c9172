"""Priorities within a queue of runs (pure).

Quorum queues know no priorities before RabbitMQ 4, and kombu's Redis transport has its own. So each class of
a queue is a queue of the broker: ``etl.high``, ``etl`` and ``etl.low``, and a worker takes from a lower one
only while the higher ones are empty (executions/worker/slots.py; docs/adr/0020).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import StrEnum

from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

DEFAULT_QUEUE = "runs"
RESERVED_QUEUES = frozenset({"maintenance", "celery"})
QUEUE_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,62}", re.ASCII)
QUEUE_RULE = "1 to 63 small letters, digits, '-' and '_', the first a letter or a digit"


class Priority(StrEnum):
    HIGH = "high"
    NORMAL = "normal"
    LOW = "low"

    @property
    def place(self) -> int:
        """0 comes first."""
        return list(Priority).index(self)


def read_queue(value: object, name: str = "queue") -> str:
    """A queue of runs. InvalidValue for what cannot be one."""
    if not isinstance(value, str) or not QUEUE_NAME.fullmatch(value):
        raise InvalidValue(f"{shown(value)} is not a queue's name: {QUEUE_RULE}.", field=name)
    if value in RESERVED_QUEUES:
        raise InvalidValue(f"{shown(value)} is no queue of runs: the name is taken.", field=name)
    return value


def broker_queue(queue: str, priority: str = Priority.NORMAL) -> str:
    """Where the broker has the runs of a class."""
    return queue if priority == Priority.NORMAL else f"{queue}.{priority}"


def run_queue(name: str) -> str:
    """The queue that a queue of the broker is a class of."""
    queue, _, priority = name.rpartition(".")
    return queue if queue and priority in {Priority.HIGH, Priority.LOW} else name


def by_priority(queues: Sequence[str]) -> list[list[str]]:
    """The broker's queues of ``queues``, class by class, the highest first."""
    return [[broker_queue(queue, priority) for queue in queues] for priority in Priority]
