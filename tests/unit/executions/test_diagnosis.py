"""Why a run is not running: the sentences, from facts."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest

from executions.bus.depths import QueueFacts
from executions.diagnosis import Code, Facts, diagnose
from executions.diagnosis.facts import CatchUp, InRedis, Line, RunRef
from executions.pools import Full
from executions.presence import PresentWorker
from executions.states import State, Trigger

NOW = datetime(2026, 12, 1, 12, tzinfo=UTC)
WORKER = PresentWorker("w1", ["etl"], 4, busy=1)
WELL = InRedis(beats=["b1"], owner="b1", workers=[WORKER])
EMPTY = {"etl.high": QueueFacts(0, 1), "etl": QueueFacts(0, 1), "etl.low": QueueFacts(0, 1)}
RUN = Facts(
    state=State.WAITING,
    trigger=Trigger.SCHEDULE,
    attempt=1,
    shard=3,
    queue="etl",
    broker_queue="etl",
    due=NOW + timedelta(minutes=5, microseconds=7),
    redis=WELL,
    queues=EMPTY,
    recorder=QueueFacts(0, 1),
)
DUE, SENT = replace(RUN, due=NOW - timedelta(seconds=3)), replace(RUN, due=NOW, queued_at=NOW)
HELD = replace(RUN, held=True)
CATCHING_UP = replace(HELD, trigger=Trigger.CATCH_UP, catch_up=CatchUp(50, 4, 0))
ACTIVE = replace(RUN, state=State.ACTIVE, worker="w1", started_at=NOW, redis=replace(WELL, claimed=True))
OTHER = RunRef(UUID(int=7), "nightly", State.ACTIVE)
POOL = Line(Full("pool:warehouse", 2), "the pool 'warehouse'", 3, [OTHER])
FULL = replace(WELL, workers=[replace(WORKER, busy=4), PresentWorker("w2", ["etl"], 8, busy=8)])
LOW = {"etl.high": QueueFacts(5, 0), "etl": QueueFacts(3, 0), "etl.low": QueueFacts(2, 0)}

CASES: dict[str, tuple[Facts, list[Code]]] = {
    "It is due in 5m, at 2026-12-01 12:05:00 UTC.": (RUN, [Code.NOT_DUE]),
    "12:05:00 UTC: somebody gave it this time.": (replace(RUN, moved=True), [Code.NOT_DUE]),
    "Attempt 1 failed: exit code 3. Attempt 2 is due in 5m": (
        replace(RUN, attempt=2, message="exit code 3"),
        [Code.BACK_OFF],
    ),
    "No beat is running": (
        replace(RUN, redis=InRedis(workers=[WORKER])),
        [Code.NOT_DUE, Code.NO_BEAT],
    ),
    "No beat owns its shard (3)": (
        replace(DUE, redis=replace(WELL, owner=None)),
        [Code.SHARD_WITHOUT_BEAT],
    ),
    "due since 3s; a beat sends it": (DUE, [Code.BEING_SENT]),
    "Redis does not answer: nothing is sent": (replace(DUE, redis=None, queues=None), [Code.REDIS_AWAY]),
    "The broker does not answer: nothing can be sent": (replace(DUE, queues=None), [Code.BROKER_AWAY]),
    "It waits until run 00000000-0000-0000-0000-000000000007 of its job has ended (Active)": (
        replace(HELD, others=[OTHER]),
        [Code.WAITS_FOR_RUN],
    ),
    "it starts in a moment": (HELD, [Code.WAITS_FOR_RUN]),
    "Its backfill runs 1 at once, and 1 are under way": (
        replace(HELD, trigger=Trigger.BACKFILL, others=[OTHER]),
        [Code.WAITS_FOR_RUN],
    ),
    "It is a backfill: such runs start at 50 a second at most": (
        replace(CATCHING_UP, trigger=Trigger.BACKFILL),
        [Code.CATCHING_UP],
    ),
    "It makes up for a missed time, after run": (
        replace(CATCHING_UP, others=[OTHER]),
        [Code.WAITS_FOR_RUN],
    ),
    "4 such runs of all jobs may be under way, and 5 are": (
        replace(CATCHING_UP, catch_up=CatchUp(50, 4, 5)),
        [Code.CATCH_UP_LIMIT],
    ),
    "it has waited 2m for a gap": (
        replace(CATCHING_UP, turned_away_at=NOW - timedelta(minutes=2)),
        [Code.CATCH_UP_GAP],
    ),
    "It waits for a place: the pool 'warehouse' may have 2 runs at once; 3 wait before it.": (
        replace(SENT, redis=replace(WELL, line=POOL)),
        [Code.POOL_FULL],
    ),
    "may have 0 runs at once; it is the next": (
        replace(SENT, redis=replace(WELL, line=replace(POOL, full=Full("pool:x", 0), ahead=0))),
        [Code.POOL_FULL],
    ),
    "Redis has lost the limits": (
        replace(SENT, redis=replace(WELL, line=replace(POOL, full=Full("pool:x", None)))),
        [Code.LIMITS_UNKNOWN],
    ),
    "No worker listens on the queue 'etl'": (
        replace(SENT, redis=replace(WELL, workers=[])),
        [Code.NO_WORKER],
    ),
    "Every slot (12) of all 2 workers of the queue 'etl' is taken": (
        replace(SENT, redis=FULL),
        [Code.WORKERS_FULL],
    ),
    "7 other runs wait in the queue 'etl' too": (
        replace(SENT, redis=FULL, queues=LOW),
        [Code.WORKERS_FULL, Code.IN_QUEUE],
    ),
    "9 other runs wait": (replace(SENT, queues=LOW, broker_queue="etl.low"), [Code.IN_QUEUE]),
    "one begins it in a moment": (SENT, [Code.IN_QUEUE]),
    "No worker of the queue 'etl' is large enough: it waits for 64 GiB": (
        replace(SENT, reason="no_room", message="waits for 64 GiB"),
        [Code.NO_ROOM],
    ),
    "no worker begins anything": (replace(SENT, redis=None), [Code.REDIS_AWAY]),
    "what it has cannot reach the workers": (
        replace(SENT, queues=None),
        [Code.IN_QUEUE, Code.BROKER_AWAY],
    ),
    "No recorder is running, so states stay as they are; 6 events wait.": (
        replace(DUE, redis=replace(WELL, sent_at=NOW), recorder=QueueFacts(6, 0)),
        [Code.IN_QUEUE, Code.NO_RECORDER],
    ),
    "The recorder is behind: 900 events": (
        replace(SENT, redis=replace(WELL, claimed=True), recorder=QueueFacts(900, 1)),
        [Code.BEGUN_UNRECORDED, Code.RECORDER_BEHIND],
    ),
    "It is being changed at this moment": (
        replace(RUN, changing=True),
        [Code.BEING_CHANGED, Code.NOT_DUE],
    ),
    "it will not start": (replace(SENT, asked_to_stop=True), [Code.STOPPING]),
    "Its job is paused": (replace(RUN, state=State.PAUSED), [Code.JOB_PAUSED]),
    "It runs on the worker w1.": (ACTIVE, [Code.RUNNING]),
    "is being stopped on the worker w1": (replace(ACTIVE, asked_to_stop=True), [Code.STOPPING]),
    "Its image is being fetched on the worker w1: pulling the image alpine: 1 of 3 layers.": (
        replace(ACTIVE, note="pulling the image alpine: 1 of 3 layers"),
        [Code.IMAGE_PULL],
    ),
    "Its runtime said last: no node has room": (
        replace(ACTIVE, note="no node has room"),
        [Code.STARTING],
    ),
    "It ran on the worker w1, which has not been heard of lately; another": (
        replace(ACTIVE, redis=WELL),
        [Code.WORKER_GONE],
    ),
    "Its attempt 1 has ended; that is not recorded yet.": (
        replace(SENT, over=True, recorder=QueueFacts(900, 1)),
        [Code.ENDED_UNRECORDED, Code.RECORDER_BEHIND],
    ),
    "has ended; that is not recorded yet.": (replace(ACTIVE, over=True), [Code.ENDED_UNRECORDED]),
    "A worker has begun it; that has not been recorded yet.": (
        replace(DUE, begun=True),
        [Code.BEGUN_UNRECORDED],
    ),
    "whether its worker is there is not known": (
        replace(ACTIVE, redis=None),
        [Code.RUNNING, Code.REDIS_AWAY],
    ),
    "It has ended: Completed Abnormally. Its program failed.": (
        replace(RUN, state=State.COMPLETED_ABNORMALLY, explanation="Its program failed."),
        [Code.ENDED],
    ),
}


@pytest.mark.parametrize("said", CASES)
def test_what_keeps_a_run_is_said_in_a_sentence(said: str) -> None:
    facts, codes = CASES[said]
    causes = diagnose(facts, NOW)
    assert [cause.code for cause in causes] == codes
    assert said in " ".join(cause.sentence for cause in causes)


def test_every_code_has_a_case() -> None:
    assert {code for _, codes in CASES.values() for code in codes} == set(Code)


def test_runs_that_it_waits_for_are_named_for_links() -> None:
    assert diagnose(replace(HELD, others=[OTHER]), NOW)[0].runs == [OTHER]
    assert diagnose(replace(SENT, redis=replace(WELL, line=POOL)), NOW)[0].runs == [OTHER]
