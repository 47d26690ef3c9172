from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.contract.bench import PLAIN_PROCESS, Bench
from tests.images import busybox_image


@pytest.fixture(scope="session")
def busybox() -> str:
    """The name of a small image that is on the engine."""
    return busybox_image()


@pytest.fixture(params=["process", PLAIN_PROCESS, pytest.param("docker", marks=pytest.mark.docker)])
def bench(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Bench]:
    """One runtime at a time; the suite holds each to the same contract."""
    image = request.getfixturevalue("busybox") if request.param == "docker" else ""
    made = Bench(request.param, image, tmp_path)
    yield made
    made.close()


@pytest.fixture
def docker_bench(busybox: str, tmp_path: Path) -> Iterator[Bench]:
    made = Bench("docker", busybox, tmp_path)
    yield made
    made.close()
