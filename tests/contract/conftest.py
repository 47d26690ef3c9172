from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.bench import PLAIN_PROCESS, Bench
from tests.images import busybox_image
from tests.kubernetes_api import StandInCluster

# A real cluster to test on, in place of the stand-in: its kubeconfig, and an image that it can pull.
REAL_CLUSTER = os.environ.get("PUNCTUAL_TEST_KUBECONFIG") or os.environ.get("KUBECONFIG", "")
KUBERNETES_IMAGE = os.environ.get("PUNCTUAL_TEST_IMAGE", "busybox:stable")


@pytest.fixture(scope="session")
def busybox() -> str:
    """The name of a small image that is on the engine."""
    return busybox_image()


@pytest.fixture(scope="session")
def stand_in(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandInCluster]:
    made = StandInCluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture
def cluster(stand_in: StandInCluster, monkeypatch: pytest.MonkeyPatch) -> Iterator[StandInCluster]:
    """The stand-in, healthy, and KUBECONFIG of a worker with the role of deploy/kubernetes."""
    monkeypatch.setenv("KUBECONFIG", str(stand_in.kubeconfig()))
    yield stand_in
    stand_in.faults.heal()
    stand_in.admission.heal()


@pytest.fixture(
    params=["process", PLAIN_PROCESS, pytest.param("docker", marks=pytest.mark.docker), "kubernetes"]
)
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """One runtime at a time; the suite holds each to the same contract."""
    if request.param == "kubernetes":
        made = request.getfixturevalue("any_cluster_bench")
    else:
        image = request.getfixturevalue("busybox") if request.param == "docker" else ""
        made = Bench(request.param, image, tmp_path)
    yield made
    made.close()


@pytest.fixture
def any_cluster_bench(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Bench:
    """Runs of a real cluster, where one is given, else of the stand-in."""
    if REAL_CLUSTER:
        monkeypatch.setenv("KUBECONFIG", REAL_CLUSTER)
        return Bench("kubernetes", KUBERNETES_IMAGE, tmp_path)
    made = Bench("kubernetes", KUBERNETES_IMAGE, tmp_path, cluster=request.getfixturevalue("cluster"))
    made.runtime.identity()  # it is connected from here on, whatever a test does to the environment
    return made


@pytest.fixture
def docker_bench(busybox: str, tmp_path: Path) -> Iterator[Bench]:
    made = Bench("docker", busybox, tmp_path)
    yield made
    made.close()
