"""What is known of a run that does not run, and what is made of it (pure)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from uuid import UUID

from executions.bus.depths import QueueFacts
from executions.pools import Full
from executions.presence import PresentWorker
from executions.states import State, Trigger
from scheduler_project.kernel.durations import format_duration

_SECOND = timedelta(seconds=1)


class Code(StrEnum):
    """What keeps a run, for programs; they may come to be more."""

    ENDED = "ended"
    RUNNING = "running"
    STARTING = "starting"
    IMAGE_PULL = "image_pull"
    WORKER_GONE = "worker_gone"
    STOPPING = "stopping"
    JOB_PAUSED = "job_paused"
    NOT_DUE = "not_due"
    BACK_OFF = "back_off"
    BEING_SENT = "being_sent"
    BEING_CHANGED = "being_changed"
    WAITS_FOR_RUN = "waits_for_run"
    CATCHING_UP = "catching_up"
    CATCH_UP_LIMIT = "catch_up_limit"
    CATCH_UP_GAP = "catch_up_gap"
    POOL_FULL = "pool_full"
    LIMITS_UNKNOWN = "limits_unknown"
    NO_WORKER = "no_worker"
    WORKERS_FULL = "workers_full"
    NO_ROOM = "no_room"
    IN_QUEUE = "in_queue"
    BEGUN_UNRECORDED = "begun_unrecorded"
    ENDED_UNRECORDED = "ended_unrecorded"
    NO_RECORDER = "no_recorder"
    RECORDER_BEHIND = "recorder_behind"
    NO_BEAT = "no_beat"
    SHARD_WITHOUT_BEAT = "shard_without_beat"
    REDIS_AWAY = "redis_away"
    BROKER_AWAY = "broker_away"


@dataclass(frozen=True, slots=True)
class RunRef:
    """Another run that has to do with it."""

    id: UUID
    job_name: str
    state: State


@dataclass(frozen=True, slots=True)
class Cause:
    """``at``: until (or since) when, where known. ``facts``: what is in the sentence, for programs."""

    code: Code
    sentence: str
    advice: str = ""
    at: datetime | None = None
    runs: Sequence[RunRef] = ()
    facts: Mapping[str, str | int | None] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Line:
    """The line of a pool that it waits in: behind ``ahead`` others; ``holders`` have places."""

    full: Full
    whose: str
    ahead: int
    holders: Sequence[RunRef] = ()


@dataclass(frozen=True, slots=True)
class InRedis:
    """What Redis knows at this moment. ``sent_at``: the broker took it then. ``claimed``: a worker holds it.
    ``done``: that worker has said how it ended.

    ``owner``: the beat of its shard. ``workers``: those of its queue.
    """

    beats: Sequence[str] = ()
    owner: str | None = None
    workers: Sequence[PresentWorker] = ()
    line: Line | None = None
    sent_at: datetime | None = None
    claimed: bool = False
    done: bool = False


@dataclass(frozen=True, slots=True)
class CatchUp:
    """The limits on what catches up, of all jobs together, and how many runs are under way."""

    rate: int
    most: int
    under_way: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """``due``: when it is looked at next; of a held run, when it would be due if it had leave.

    ``redis``, ``queues``: None where they do not answer; ``queues``: of the broker, by name, in the order in
    which workers take from them. ``others``: runs of the same job that have not ended and may go before it.
    ``note``: what its runtime has said last, while it has put out nothing itself. ``begun``, ``over``: the
    attempt has, by its history or its claim, whatever the row says.
    """

    state: State
    trigger: Trigger
    attempt: int
    shard: int
    queue: str
    broker_queue: str
    due: datetime | None = None
    held: bool = False
    changing: bool = False
    asked_to_stop: bool = False
    reason: str = ""
    message: str = ""
    worker: str = ""
    queued_at: datetime | None = None
    started_at: datetime | None = None
    finished_at: datetime | None = None
    moved: bool = False
    most_active: int | None = None
    turned_away_at: datetime | None = None
    explanation: str = ""
    note: str = ""
    others: Sequence[RunRef] = ()
    begun: bool = False
    over: bool = False
    redis: InRedis | None = None
    queues: Mapping[str, QueueFacts] | None = None
    recorder: QueueFacts | None = None
    catch_up: CatchUp | None = None


def instant_text(at: datetime) -> str:
    return f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC"


def length_text(length: timedelta) -> str:
    """In whole seconds, one at least."""
    return format_duration(max(_SECOND, length // _SECOND * _SECOND))
