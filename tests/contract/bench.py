"""What the contract suite needs to know of each runtime, and short words for what it does."""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from containers.kubernetes.options import KubernetesOptions
from containers.logs import LogLimit, LogStore
from containers.outcome import Outcome
from containers.process import ProcessOptions, ProcessRuntime
from containers.process.container import _marked_processes
from containers.registry import RuntimeOptions, runtime_from
from containers.runtime import Runtime
from containers.spec import ContainerSpec, container_name
from containers.supervise import Stop, run_to_end
from scheduler_project.kernel.clock import monotonic
from tests.kubernetes_api import StandInCluster
from tests.processes import PROC, text_of

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
        log = self.bench.logs.writer(self.id, 1, self.spec.hidden())
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
    cluster: StandInCluster | None = None  # of kind kubernetes; None: a real one, of KUBECONFIG
    kubernetes: KubernetesOptions = field(default_factory=KubernetesOptions)

    def __post_init__(self) -> None:
        self.runtime = self.another_runtime()
        self.logs = LogStore(self.home / "logs", self.limit)

    def another_runtime(self) -> Runtime:
        """As another worker would have it."""
        if self.kind == PLAIN_PROCESS:
            return ProcessRuntime(ProcessOptions(home=self.home, groups=None))
        return runtime_from(self.kind, RuntimeOptions(home=self.home, kubernetes=self.kubernetes))

    @property
    def memory_enforcement(self) -> str:
        """``cgroup``, or ``address_space`` where what runs the containers can make no control groups."""
        return str(getattr(self.cluster or self.runtime, "memory_enforcement", "cgroup"))

    @property
    def is_real_cluster(self) -> bool:
        return self.kind == "kubernetes" and self.cluster is None

    @property
    def whole_seconds(self) -> bool:
        """Whether its engine's times are whole seconds only."""
        return self.kind == "kubernetes"

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
        if self.is_real_cluster:  # out of sight: 0 stands for all of them
            container = self.runtime.attach(run.spec.name)
            return {0} if container is not None and container.wait(0) is None else set()
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
    return {int(path.name) for path in PROC.glob("[0-9]*") if container_id in text_of(path / "cgroup")}
