"""What becomes of runs when their engine is stopped, killed, restarted, or out of disk.

The engine is the test's own.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import docker
import pytest

from containers.docker import DockerOptions, DockerRuntime
from containers.outcome import Outcome, Reason
from tests.contract.bench import Bench, Run, eventually
from tests.contract.own_engine import OwnEngine, own_engine_trouble

pytestmark = [
    pytest.mark.docker,
    # The SDK leaves the socket of a refused connection to the garbage collector, which complains.
    pytest.mark.filterwarnings(
        "ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning"
    ),
    pytest.mark.skipif(bool(own_engine_trouble()), reason=own_engine_trouble()),
]

LASTING = "echo ready; n=0; while [ $n -lt 30 ]; do sleep 0.1; n=$((n+1)); done; echo over; exit 7"
POLITE = f"trap 'exit 0' TERM; {LASTING}"


@pytest.fixture
def engine() -> Iterator[OwnEngine]:
    with closing(OwnEngine(disk_bytes=96 * 1024**2)) as made:
        yield made
    gc.collect()


@pytest.fixture
def own_bench(engine: OwnEngine, tmp_path: Path) -> Iterator[Bench]:
    with closing(Bench("docker", engine.load(), tmp_path)) as made:
        made.runtime.close()
        made.runtime = DockerRuntime(DockerOptions(host=engine.host, network="none"))
        yield made


def run_through(runs: Sequence[Run], restart: Callable[[], None]) -> list[Outcome]:
    with ThreadPoolExecutor(len(runs)) as pool:
        futures = [pool.submit(run.to_end) for run in runs]
        try:
            for run in runs:
                eventually(partial(run.says, b"ready"), "it runs")
        finally:
            restart()
        return [future.result(60) for future in futures]


def test_runs_are_lost_with_their_engine_and_go_on_where_it_restores_them(engine, own_bench, docker_bench):
    def restart(end: Callable[[], None], *options: str) -> Callable[[], None]:
        def through() -> None:
            end()
            engine.start(*options)

        return through

    assert own_bench.runtime.identity() != docker_bench.runtime.identity()
    for end in (engine.stop, engine.kill):
        runs = [own_bench.script(LASTING), own_bench.script(POLITE)]
        outcomes = run_through(runs, restart(end))
        assert {outcome.reason for outcome in outcomes} == {Reason.LOST}
        assert all("its engine" in outcome.message for outcome in outcomes)
        assert [run.log for run in runs] == [b"ready\n"] * 2
    engine.stop()
    engine.start("--live-restore")
    for end in (engine.stop, engine.kill):
        runs = [own_bench.script(LASTING), own_bench.script(POLITE)]
        outcomes = run_through(runs, restart(end, "--live-restore"))
        assert {(outcome.reason, outcome.exit_code) for outcome in outcomes} == {(Reason.FAILED, 7)}
        assert [run.log for run in runs] == [b"ready\nover\n"] * 2


def test_a_run_that_fills_the_disk_of_its_engine_fails_and_leaves_room_for_the_next(own_bench):
    filler = own_bench.script("cat /dev/zero >/big; echo full", read_only_root=False)
    full = filler.to_end()
    assert (full.reason, full.exit_code) == (Reason.SUCCEEDED, 0)
    assert b"No space left on device" in filler.log
    own_bench.runtime.forget(filler.spec.name)
    assert own_bench.script("echo again", read_only_root=False).to_end().reason is Reason.SUCCEEDED


def test_a_run_that_somebody_stops_is_lost(docker_bench):
    runs = [docker_bench.script(LASTING), docker_bench.script(POLITE)]

    def stop_them() -> None:
        with closing(docker.APIClient(version="auto")) as api:
            for run in runs:
                api.stop(run.spec.name)

    outcomes = run_through(runs, stop_them)
    assert {outcome.reason for outcome in outcomes} == {Reason.LOST}
    assert all("somebody stopped it" in outcome.message for outcome in outcomes)
