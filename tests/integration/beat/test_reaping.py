"""Which containers the reaper removes: real processes, and the answers of a beat."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from uuid import UUID, uuid4

import pytest

from beat.ownership import Ownership
from beat.registrar import Registrar
from containers.process import ProcessOptions, ProcessRuntime
from containers.spec import LABEL_NAMESPACE, ContainerSpec, container_name
from executions.claims import Claims
from executions.events import Event
from executions.ids import execution_id
from executions.states import EventType
from executions.store import Store
from executions.transitions import record, request_cancel
from executions.worker.engine import WorkerEngine
from executions.worker.reaper import Reaper, attempt_of
from scheduler_project.kernel.clock import SYSTEM_CLOCK, Clock, ManualClock, monotonic, utcnow
from tests.integration.making import CANCELLED, COMPLETED, FAILED, LOST, STARTED, make_run, said

pytestmark = pytest.mark.django_db
MINUTE = timedelta(minutes=1)
Make = Callable[..., Reaper]


@pytest.fixture
def runtime(tmp_path: Path) -> Iterator[ProcessRuntime]:
    found = ProcessRuntime(ProcessOptions(home=tmp_path, groups=None))
    yield found
    for name in found.owned():
        found.forget(name)


@pytest.fixture
def reaper_of(runtime: ProcessRuntime) -> Iterator[Make]:
    engines = []

    def make(store: Store, clock: Clock = SYSTEM_CLOCK) -> Reaper:
        engine = WorkerEngine(runtime, store, MINUTE, lambda _: None)
        engines.append(engine)
        deadline = monotonic() + 10
        while not engine.identity:
            assert monotonic() < deadline
            time.sleep(0.01)
        return Reaper(runtime, store, engine, clock, 0)

    yield make
    for engine in engines:
        engine.close()


@pytest.fixture
def reap(reaper_of: Make, store: Store, ownership: Ownership) -> Callable[[], None]:
    """A look of the reaper, an answer of the beat, and a look at what was answered."""
    reaper, registrar = reaper_of(store), Registrar(store, ownership)

    def once() -> None:
        reaper.run_once()
        registrar.run_once()
        reaper.run_once()

    return once


def start(
    runtime: ProcessRuntime,
    store: Store,
    run: UUID,
    attempt: int = 1,
    *,
    command: str = "sleep 60",
    beside: str = "",
) -> str:
    name = container_name(run, attempt)
    labels = {LABEL_NAMESPACE: store.namespace + beside}
    runtime.launch(ContainerSpec(name=name, argv=("sh", "-c", command), labels=labels))
    return name


def tell(*events: Event) -> None:
    record(list(events), utcnow())


def test_what_runs_stays_whoever_has_forgotten_it(
    reap: Callable[[], None], runtime: ProcessRuntime, store: Store
) -> None:
    """Its worker is slow, its claim has ended, Redis is empty: none of that ends a run."""
    run = make_run()
    tell(said(STARTED, run))
    name = start(runtime, store, run)
    reap()
    store.delete_namespace()
    reap()
    assert runtime.owned() == [name]
    container = runtime.attach(name)
    assert container is not None
    assert container.wait(0) is None


@pytest.mark.parametrize("how", [COMPLETED, FAILED, CANCELLED])
@pytest.mark.parametrize("command", ["sleep 60", "true"])
def test_what_belongs_to_an_execution_that_has_ended_is_removed(
    reap: Callable[[], None], runtime: ProcessRuntime, store: Store, how: EventType, command: str
) -> None:
    run = make_run()
    start(runtime, store, run, command=command)
    tell(said(STARTED, run), said(how, run))
    reap()
    assert runtime.owned() == []


def test_an_attempt_that_another_has_followed_is_removed_and_that_one_stays(
    reap: Callable[[], None], runtime: ProcessRuntime, store: Store
) -> None:
    run = make_run()
    tell(said(STARTED, run), said(LOST, run), said(STARTED, run, 2))
    start(runtime, store, run, 1)
    second = start(runtime, store, run, 2)
    reap()
    assert runtime.owned() == [second]


def test_what_somebody_holds_is_left_to_them(
    reap: Callable[[], None], runtime: ProcessRuntime, store: Store
) -> None:
    run = make_run()
    name = start(runtime, store, run)
    Claims(store, "w", MINUTE).claim(run, 1)
    request_cancel(run, utcnow())
    reap()
    assert runtime.owned() == [name]


def test_what_has_ended_is_kept_until_somebody_has_read_how(
    reap: Callable[[], None], runtime: ProcessRuntime, store: Store
) -> None:
    run = make_run()
    tell(said(STARTED, run))
    name = start(runtime, store, run, command="exit 3")
    reap()
    assert runtime.owned() == [name]
    tell(said(FAILED, run))
    reap()
    assert runtime.owned() == []


def test_what_others_have_started_is_theirs(
    reap: Callable[[], None], runtime: ProcessRuntime, store: Store
) -> None:
    run = make_run()
    tell(said(STARTED, run), said(COMPLETED, run))
    name = start(runtime, store, run, beside="-other")
    reap()
    assert runtime.owned() == [name]


def test_a_silent_database_and_a_second_reaper_remove_nothing(
    runtime: ProcessRuntime, store: Store, reaper_of: Make, ownership: Ownership
) -> None:
    run = make_run()
    tell(said(STARTED, run), said(COMPLETED, run))
    name = start(runtime, store, run)
    leader, second = reaper_of(store), reaper_of(store)
    leader.run_once()
    leader.run_once()
    assert runtime.owned() == [name]
    Registrar(store, ownership).run_once()
    second.run_once()
    assert runtime.owned() == [name]
    leader.run_once()
    assert runtime.owned() == []


def test_of_executions_that_nobody_knows_only_what_ended_long_ago_goes(
    runtime: ProcessRuntime,
    store: Store,
    reaper_of: Make,
    ownership: Ownership,
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level("INFO")
    run, ended = (execution_id(uuid4(), utcnow(), "schedule", 3) for _ in range(2))
    names = [start(runtime, store, run), start(runtime, store, ended, command="true")]
    clock = ManualClock(utcnow())
    reaper = reaper_of(store, clock)
    reaper.run_once()
    Registrar(store, ownership).run_once()
    reaper.run_once()
    assert runtime.owned() == sorted(names)
    reaper.run_once()
    told = [line.getMessage() for line in caplog.records].count("container_unknown")
    assert told == 2  # once for each
    clock.advance(timedelta(hours=25))
    reaper.run_once()
    assert runtime.owned() == [names[0]]


def test_names_are_read_as_they_are_made() -> None:
    run = uuid4()
    assert attempt_of(container_name(run, 7)) == (run, 7)
    assert attempt_of("punctual-db-1") is None
