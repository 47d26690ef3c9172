"""Images that the engine does not have: a real engine pulls from a registry that the test is."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial
from pathlib import Path

import docker
import pytest

from containers.docker import DockerOptions, DockerRuntime
from containers.docker.disk import mark_of
from containers.outcome import Outcome, Reason
from containers.spec import PullPolicy
from containers.supervise import NotLaunched, Stop, run_to_end
from scheduler_project.kernel.clock import monotonic
from tests.contract.bench import Bench, eventually
from tests.contract.image_registry import ImageRegistry

pytestmark = pytest.mark.docker


@pytest.fixture
def registry() -> Iterator[ImageRegistry]:
    with closing(ImageRegistry()) as made:
        yield made
        with closing(docker.APIClient(version="auto")) as engine:
            for name in {key.partition("/")[0] for key in made.manifests}:
                for image in engine.images(f"{made.address}/{name}", quiet=True):
                    engine.remove_image(image, force=True)


LARGE = 24_000_000


def fresh(size: int = 1000) -> bytes:
    """What no engine has yet, and no compression makes smaller."""
    return os.urandom(size)


def shows(registry: ImageRegistry, content: bytes, docker_bench: Bench, **changes):
    return docker_bench.script("wc -c </content", image=registry.push("shows", content), **changes)


def test_it_is_pulled_once_for_all_who_wait_and_each_log_shows_how_it_goes(docker_bench, registry):
    image = registry.push("shared", fresh(LARGE))
    runs = [docker_bench.script("wc -c </content", image=image) for _ in range(4)]
    registry.gate.clear()
    with ThreadPoolExecutor(len(runs)) as pool:
        leaver = pool.submit(runs[0].to_end, runs[0].stop_once_it_says(b"of 2 layers", Stop.CANCEL))
        others = [pool.submit(run.to_end) for run in runs[1:]]
        for run in runs[1:]:
            eventually(partial(run.says, b"MiB"), "the pull shows in the log")
        assert leaver.result().reason is Reason.CANCELLED
        registry.gate.set()
        assert {future.result().reason for future in others} == {Reason.SUCCEEDED}
    assert registry.asked["manifests"] <= 2  # one HEAD, one GET
    assert not registry.abandoned.is_set()
    notes = runs[1].log.decode().splitlines()
    assert notes.pop() == str(LARGE)
    assert all(re.fullmatch(r"\[punctual \S+Z\] .*", note) for note in notes)
    assert f"pulling the image {image}" in notes[0]
    assert any(re.search(r": \d of 2 layers, \d+\.\d of \d+\.\d MiB$", note) for note in notes)
    assert re.search(r"has arrived, after \d+\.\d s$", notes[-1])
    assert len(notes) < 12


def test_credentials_come_from_the_usual_config_as_it_is_then(docker_bench, registry, monkeypatch, tmp_path):
    monkeypatch.setenv("DOCKER_CONFIG", str(tmp_path))
    registry.private = True
    run = shows(registry, fresh(), docker_bench)
    refused = run.to_end()
    assert refused.reason is Reason.IMAGE_PULL_FAILED
    assert "check the name and the credentials" in refused.message
    Path(tmp_path, "config.json").write_text(registry.login())
    assert run.to_end().reason is Reason.SUCCEEDED
    assert b"sesame" not in run.log


def test_limits_and_passing_faults_are_waited_out(docker_bench, registry):
    registry.refusals = [429, 429, 503]  # the first is for the HEAD, after which the engine asks by GET
    run = shows(registry, fresh(), docker_bench)
    assert run.to_end().reason is Reason.SUCCEEDED
    assert b"limits how often" in run.log
    assert re.search(rb"toomanyrequests.*again in \d+ s", run.log)


def test_what_is_not_there_is_said_at_once_and_a_limit_that_stays_in_the_end(docker_bench, registry):
    missing = docker_bench.run("true", image=f"{registry.address}/none:1")
    outcome = missing.to_end()
    assert outcome.reason is Reason.IMAGE_PULL_FAILED
    assert "there is no such image" in outcome.message
    registry.refusals = [429] * 100
    outcome = shows(registry, fresh(), docker_bench, start_timeout_s=1.5).to_end()
    assert outcome.reason is Reason.IMAGE_PULL_FAILED
    assert re.search(r"within 1\.5 s.*limits how often", outcome.message)


@pytest.mark.parametrize("stop", [Stop.CANCEL, Stop.DETACH, None])
def test_a_pull_ends_when_the_last_who_waits_leaves(docker_bench, registry, stop):
    """Cancelled, handed over, or out of time: within a second, and the engine stops pulling too."""
    registry.gate.clear()
    run = shows(registry, fresh(LARGE), docker_bench, start_timeout_s=30 if stop else 1)
    left: list[float] = []

    def wanted():
        if not stop or not registry.slowed.is_set():
            return None
        left.append(monotonic())
        return stop

    if stop is Stop.DETACH:
        with pytest.raises(NotLaunched):
            run.to_end(wanted)
    else:
        outcome = run.to_end(wanted)
        assert outcome.reason is (Reason.CANCELLED if stop else Reason.IMAGE_PULL_FAILED)
    assert not left or monotonic() - left[0] < 1
    assert run.spec.name not in docker_bench.runtime.owned()
    assert registry.abandoned.wait(5)


def test_the_pull_policy_is_kept(docker_bench, registry):
    never = shows(registry, fresh(), docker_bench, pull_policy=PullPolicy.NEVER).to_end()
    assert never.reason is Reason.IMAGE_PULL_FAILED
    assert "Never" in never.message
    assert registry.asked["manifests"] == 0
    asked_for = partial(docker_bench.script, "wc -c </content", image=registry.push("shows", fresh(2000)))
    for size in (2000, 3000):
        registry.push("shows", fresh(size))
        run = asked_for(pull_policy=PullPolicy.ALWAYS)
        assert run.to_end().reason is Reason.SUCCEEDED
        assert run.log.endswith(b"\n%d\n" % size)
    registry.push("shows", fresh(4000))
    present = asked_for()
    assert present.to_end().reason is Reason.SUCCEEDED
    assert present.log == b"3000\n"


def test_over_the_limit_what_was_pulled_here_and_used_longest_ago_goes(docker_bench, registry):
    mark = f"punctual-test/pulled-{registry.address.partition(':')[2]}"
    options = DockerOptions(pulled=mark, pulled_kept_s=0.0)
    foreign, ours, pulled_by_another = (registry.push(f"kept{n}", fresh()) for n in range(3))
    images = {foreign, ours, pulled_by_another}
    with closing(docker.APIClient(version="auto")) as engine, closing(DockerRuntime(options)) as runtime:
        engine.pull(pulled_by_another)
        for image in images:
            assert run_on(runtime, docker_bench, image).reason is Reason.SUCCEEDED
        engine.tag(foreign, "punctual-test/somebodys", "1")
        assert runtime.keep_images_within(0) == []  # containers need them
        for run in docker_bench.runs:
            runtime.forget(run.spec.name)
        assert runtime.keep_images_within(1 << 40) == []
        with closing(DockerRuntime(DockerOptions(pulled=mark))) as patient:
            assert patient.keep_images_within(0) == []  # they have just been pulled
        assert runtime.keep_images_within(0) == [f"{ours}:latest"]
        left = {tag for image in engine.images() for tag in image["RepoTags"] or []}
        assert left & {f"{name}:latest" for name in images} == {
            f"{name}:latest" for name in (foreign, pulled_by_another)
        }
        assert [tag for tag in left if tag.startswith(options.pulled)] == [mark_of(foreign, options.pulled)]
        for name in ("punctual-test/somebodys:1", mark_of(foreign, options.pulled)):
            engine.remove_image(name)


def run_on(runtime: DockerRuntime, bench: Bench, image: str) -> Outcome:
    run = bench.script("true", image=image)
    return run_to_end(runtime, run.spec, bench.logs.writer(run.id, 1), lambda: None)
