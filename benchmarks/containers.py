"""What a start in Docker costs over a bare ``docker run -d`` of the same image, and a hundred at once.

One by one: a bare start and a launch by the runtime, in turns, each until it is told that the container
runs; it is removed before the next. The runtime's has all that a run has: limits, a read-only root, no
capabilities, an init. At once: a hundred of each from a hundred threads; those of the runtime are followed
and waited for to their ends, and each must end with its own exit code and its own output. Removing is not
measured.
"""

from __future__ import annotations

import subprocess
import tempfile
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median

from benchmarks.figures import Figure, progress
from containers.docker import DockerRuntime
from containers.logs import LogStore
from containers.spec import ContainerSpec, container_name
from containers.supervise import run_to_end
from scheduler_project.kernel.clock import monotonic
from tests.images import busybox_image

PAIRS = 15
LASTING = -1
AT_ONCE = 100
MEMORY_BYTES = 64 * 1024**2


@dataclass
class _Place:
    """An engine and what was started on it."""

    image: str
    runtime: DockerRuntime
    logs: LogStore
    names: list[str] = field(default_factory=list)

    def pair(self) -> tuple[float, float]:
        """Seconds of a bare start and of a launch, of containers that last."""
        times = []
        for start in (self.bare, self.launch):
            times.append(_time(start, LASTING))
            self.clear()
        return times[0], times[1]

    def bare(self, number: int) -> None:
        name = container_name(uuid.uuid4(), 1)
        self.names.append(name)
        command = ["docker", "run", "-d", "--name", name, self.image, "sh", "-c", script(number)]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)

    def spec(self, number: int) -> tuple[uuid.UUID, ContainerSpec]:
        run = uuid.uuid4()
        self.names.append(container_name(run, 1))
        argv = ("sh", "-c", script(number))
        spec = ContainerSpec(name=self.names[-1], argv=argv, image=self.image, memory_bytes=MEMORY_BYTES)
        return run, spec

    def launch(self, number: int) -> None:
        self.runtime.launch(self.spec(number)[1])

    def run(self, number: int) -> None:
        run, spec = self.spec(number)
        outcome = run_to_end(self.runtime, spec, self.logs.writer(run, 1), lambda: None)
        output = b"".join(self.logs.read(run, 1))
        if (outcome.exit_code, output) != (number % 100, b"%d\n" % number):
            raise AssertionError(f"run {number} ended otherwise: {outcome}, {output!r}")

    def clear(self) -> None:
        with ThreadPoolExecutor(4) as pool:
            list(pool.map(self.runtime.forget, self.names))
        self.names.clear()


def script(number: int) -> str:
    if number == LASTING:
        return "sleep 60"
    return f"echo {number}; exit {number % 100}"


def measure(rounds: int) -> list[Figure]:
    bare, ours, ratios, bare_at_once, ours_at_once = [], [], [], [], []
    for number in range(1, rounds + 1):
        progress(f"containers: round {number} of {rounds}")
        with _place() as place:
            bare_s, ours_s = zip(*(place.pair() for _ in range(PAIRS)), strict=True)
            bare.append(median(bare_s) * 1000)
            ours.append(median(ours_s) * 1000)
            ratios.append(ours[-1] / bare[-1])
            bare_at_once.append(_time(_all_at_once(place.bare), AT_ONCE))
            place.clear()
            ours_at_once.append(_time(_all_at_once(place.run), AT_ONCE))
    return [
        Figure("containers", "docker run -d", "ms", bare),
        Figure("containers", "launch", "ms", ours),
        Figure("containers", "launch / docker run -d", "ratio", ratios),
        Figure("containers", "100 docker run -d at once", "s", bare_at_once),
        Figure("containers", "100 runs at once, all right", "s", ours_at_once),
    ]


@contextmanager
def _place() -> Iterator[_Place]:
    with tempfile.TemporaryDirectory() as folder, closing(DockerRuntime()) as runtime:
        place = _Place(busybox_image(), runtime, LogStore(Path(folder)))
        try:
            yield place
        finally:
            place.clear()


def _time(action: Callable[[int], object], number: int) -> float:
    begin = monotonic()
    action(number)
    return monotonic() - begin


def _all_at_once(action: Callable[[int], object]) -> Callable[[int], object]:
    def every(count: int) -> None:
        with ThreadPoolExecutor(count) as pool:
            list(pool.map(action, range(count)))

    return every
