"""What the contract suite needs to know of each runtime, and short words for what it does."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from containers.logs import LogLimit, LogStore
from containers.outcome import Outcome
from containers.process import ProcessOptions, ProcessRuntime
from containers.process.container import _marked_processes
from containers.registry import RuntimeOptions, runtime_from
from containers.runtime import Runtime
from containers.spec import ContainerSpec, container_name
from containers.supervise import Stop, run_to_end
from scheduler_project.kernel.clock import monotonic

PATIENCE_S = 20.0
PLAIN_PROCESS = "process without control groups"


def eventually(condition: Callable[[], object], what: str) -> None:
    """Wait until ``condition`` holds; fail, naming ``what``, after PATIENCE_S."""
    deadline = monotonic() + PATIENCE_S
    while not condition():
        assert monotonic() < deadline, f"never happened: {what}"
        time.sleep(0.01)


def never_stop() -> Stop | None:
    return None


@dataclass
class Run:
    """One attempt under test."""

    bench: Bench
    id: uuid.UUID
    spec: ContainerSpec

    def to_end(self, wanted_stop: Callable[[], Stop | None] = never_stop, *, attach_only=False) -> Outcome:
        log = self.bench.logs.writer(self.id, 1)
        return run_to_end(self.bench.runtime, self.spec, log, wanted_stop, attach_only=attach_only)

    @property
    def log(self) -> bytes:
        if not self.bench.logs.attempts(self.id):
            return b""
        return b"".join(self.bench.logs.read(self.id, 1))

    def says(self, word: bytes) -> bool:
        return word in self.log

    def stop_once_it_says(self, word: bytes, stop: Stop) -> Callable[[], Stop | None]:
        return lambda: stop if self.says(word) else None


@dataclass
class Bench:
    """A runtime, a log store, and the names that have to be tidied up."""

    kind: str
    image: str
    home: Path
    limit: LogLimit = field(default_factory=LogLimit)
    runs: list[Run] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.runtime = self.another_runtime()
        self.logs = LogStore(self.home / "logs", self.limit)

    def another_runtime(self) -> Runtime:
        """As another worker would have it."""
        if self.kind == PLAIN_PROCESS:
            return ProcessRuntime(ProcessOptions(home=self.home, groups=None))
        return runtime_from(self.kind, RuntimeOptions(home=self.home))

    def run(self, *argv: str, **changes) -> Run:
        run_id = uuid.uuid4()
        values = {"image": self.image, "grace_s": 0.5, **changes}
        spec = ContainerSpec(name=container_name(run_id, 1), argv=argv, **values)
        run = Run(self, run_id, spec)
        self.runs.append(run)
        return run

    def script(self, text: str, **changes) -> Run:
        return self.run("sh", "-c", text, **changes)

    def processes(self, run: Run) -> set[int]:
        """Processes of this host that belong to the run."""
        if self.kind != "docker":
            return _marked_processes(run.spec.name)
        return _processes_of_container(run.spec.name)

    def close(self) -> None:
        for run in self.runs:
            self.runtime.forget(run.spec.name)
        self.runtime.close()


def _processes_of_container(name: str) -> set[int]:
    """By control group; the container's id is part of its path."""
    import docker
    from docker.errors import NotFound

    client = docker.APIClient(version="auto")
    try:
        container_id = client.inspect_container(name)["Id"]
    except NotFound:
        return set()
    finally:
        client.close()
    return {int(path.name) for path in Path("/proc").glob("[0-9]*") if container_id in _groups(path)}


def _groups(process: Path) -> str:
    try:
        return (process / "cgroup").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return ""
