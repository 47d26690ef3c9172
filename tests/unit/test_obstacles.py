"""What keeps runs from starting, in sentences."""

from __future__ import annotations

from datetime import timedelta

from beat.overview import Beats
from executions.bus.depths import QueueFacts
from executions.bus.topology import AUDITOR, RECORDER
from executions.overview import Unstarted
from executions.presence import PresentWorker
from scheduler_project.kernel.clock import utcnow
from scheduler_project.operating.obstacles import Obstacle, obstacles

NOW = utcnow()
BEATS = Beats({"beat-1": [0, 1]}, [])
FREE, FULL = PresentWorker("w1", ["runs"], 2, busy=1), PresentWorker("w2", ["runs"], 2, busy=2)


OWN = {RECORDER: QueueFacts(0, 1), AUDITOR: QueueFacts(0, 1)}


def waits(queue: str, minutes: float | None) -> Unstarted:
    return Unstarted(queue, 2, None if minutes is None else NOW - timedelta(minutes=minutes))


def test_nothing_is_said_where_nothing_is_wrong_or_nobody_knows() -> None:
    assert obstacles(BEATS, [FREE], [waits("runs", 0.1), waits("runs", None)], NOW, OWN) == []
    assert obstacles(None, None, [waits("gpu", 9)], NOW, None) == []
    assert obstacles(BEATS, [FREE], [], NOW, {RECORDER: QueueFacts(9), AUDITOR: QueueFacts(9)}) == []


def test_without_beat_or_worker_nothing_starts() -> None:
    assert obstacles(Beats({}, [0, 1]), [], [], NOW, OWN) == [
        Obstacle("No beat is alive: nothing that is due is sent.", stops=True),
        Obstacle("No worker is alive: nothing starts.", stops=True),
    ]
    (of_shards,) = obstacles(Beats({"beat-1": [0]}, [1]), [FREE], [], NOW, OWN)
    assert (of_shards.sentence.split(":")[0], of_shards.stops) == ("No beat owns the shards 1", False)


def test_a_queue_that_nobody_serves_stops_its_runs_at_once() -> None:
    assert obstacles(BEATS, [FREE], [waits("gpu", None)], NOW, OWN) == [
        Obstacle("2 runs for the queue 'gpu' cannot start: no worker takes from it.", stops=True)
    ]


def test_a_long_wait_is_told_with_what_is_known_of_it() -> None:
    for workers, why in (([FULL], "all slots"), ([FREE, FULL], "have not been sent, or its workers")):
        (told,) = obstacles(BEATS, workers, [waits("runs", 2)], NOW, OWN)
        assert told.sentence.startswith("2 runs for the queue 'runs' should have begun, the first 2m ago: ")
        assert why in told.sentence and not told.stops


def test_without_a_recorder_nothing_goes_on_and_without_an_auditor_the_history_waits() -> None:
    of_recorder, of_auditor = obstacles(
        BEATS, [FREE], [], NOW, {RECORDER: QueueFacts(1, 0), AUDITOR: QueueFacts(2, 0)}
    )
    assert of_recorder.sentence.startswith("No recorder is running") and of_recorder.stops
    assert of_recorder.sentence.endswith("1 message waiting.")
    assert of_auditor.sentence.startswith("No auditor is running") and not of_auditor.stops
