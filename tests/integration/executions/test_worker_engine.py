"""What a worker says of its runtime when it starts."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import pytest

from containers.kubernetes.runtime import KubernetesRuntime
from executions.store import Store
from executions.worker.engine import WorkerEngine
from scheduler_project.kernel.clock import monotonic
from tests.kubernetes_api import StandInCluster
from tests.kubernetes_api.cluster import WORKER


def until(condition: Callable[[], object]) -> None:
    deadline = monotonic() + 10
    while not condition():
        assert monotonic() < deadline
        time.sleep(0.01)


def test_a_right_that_is_missing_is_named_when_the_worker_starts_and_it_works_on(
    tmp_path: Path, store: Store, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    cluster = StandInCluster(tmp_path)
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig()))
    rules = cluster.access.rules[WORKER]
    cluster.access.rules[WORKER] = [replace(rule, verbs=tuple({*rule.verbs} - {"patch"})) for rule in rules]
    runtime = KubernetesRuntime()
    engine = WorkerEngine(runtime, store, timedelta(minutes=1), lambda _: None)
    try:
        until(lambda: engine.identity)
        said = [record for record in caplog.records if record.message == "runtime_not_ready"]
        assert [(record.levelname, "may not patch jobs in" in vars(record)["error"]) for record in said] == [
            ("WARNING", True)
        ]
    finally:
        engine.close()
        runtime.close()
        cluster.close()
