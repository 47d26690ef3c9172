"""What only a container engine can do, and what only it can get wrong."""

from __future__ import annotations

import gc
import re
import socket
import time
import uuid
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta
from email.utils import format_datetime
from functools import partial
from typing import Any

import docker
import pytest

from containers.docker import DockerOptions, DockerRuntime
from containers.outcome import Reason
from containers.registry import detect
from containers.runtime import RuntimeUnavailable
from containers.secrets import Secret
from containers.spec import LABEL_ATTEMPT, LABEL_EXECUTION, LABEL_MANAGED, LABEL_NAMESPACE
from containers.supervise import Detached, Stop
from containers.volumes import Volume, VolumeKind
from scheduler_project.kernel.clock import monotonic, utcnow
from tests.contract.bench import eventually
from tests.contract.engine_proxy import EngineProxy
from tests.contract.test_runtime_contract import COUNTED, COUNTING

pytestmark = pytest.mark.docker


@pytest.fixture
def engine():
    with closing(docker.APIClient(version="auto")) as client:
        yield client


@pytest.fixture
def proxy(tmp_path):
    made = EngineProxy(tmp_path / "engine.sock")
    yield made
    made.cut()


@pytest.fixture
def behind_proxy(docker_bench, proxy):
    """The bench, its runtime reaching the engine through a proxy that can be cut."""
    direct, docker_bench.runtime = docker_bench.runtime, DockerRuntime(DockerOptions(host=proxy.host))
    yield docker_bench
    docker_bench.runtime.close()
    docker_bench.runtime = direct


def test_the_time_of_an_engine_is_that_of_its_answers(behind_proxy, proxy):
    theirs = utcnow() - timedelta(hours=1)
    proxy.date = format_datetime(theirs, usegmt=True)
    run = behind_proxy.script("true")
    container = behind_proxy.runtime.launch(run.spec)
    assert abs(container.now() - theirs) < timedelta(seconds=10)


# The SDK leaves the socket of a refused connection to the garbage collector, which complains.
@pytest.mark.filterwarnings("ignore:Exception ignored in. <socket:pytest.PytestUnraisableExceptionWarning")
class TestEngineThatDoesNotAnswer:
    @pytest.fixture(autouse=True)
    def collect_here(self):
        yield
        gc.collect()

    def test_the_error_says_where_and_what_to_do(self, tmp_path):
        runtime = DockerRuntime(DockerOptions(host=f"unix://{tmp_path}/none.sock"))
        with pytest.raises(RuntimeUnavailable, match=r"none\.sock.*start it.*PUNCTUAL_RUNTIME=process"):
            runtime.ping()
        runtime.close()

    def test_it_is_detected(self, tmp_path):
        assert detect()
        assert not detect(f"unix://{tmp_path}/none.sock")

    def test_a_launch_may_be_tried_again_later(self, behind_proxy, proxy):
        run = behind_proxy.script("echo hello")
        proxy.cut()
        with pytest.raises(RuntimeUnavailable):
            run.to_end()
        proxy.restore()
        assert run.to_end().reason is Reason.SUCCEEDED

    def test_a_launch_waits_for_a_silent_one_no_longer_than_for_the_start(self, behind_proxy, proxy):
        run = behind_proxy.script("echo hello", start_timeout_s=0.5)
        behind_proxy.runtime.ping()
        proxy.flowing.clear()
        began = monotonic()
        with pytest.raises(RuntimeUnavailable, match="timed out"):
            run.to_end()
        assert monotonic() - began < 10
        proxy.flowing.set()
        assert run.to_end().reason is Reason.SUCCEEDED

    def test_a_run_goes_on_while_it_is_away_and_its_log_is_whole(self, behind_proxy, proxy):
        run = behind_proxy.script(COUNTING)
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(run.to_end)
            eventually(lambda: b"line 5\n" in run.log, "the run is followed")
            proxy.cut()
            eventually(lambda: not behind_proxy_is_running(run), "the run ends unseen")
            assert not future.done()
            proxy.restore()
            outcome = future.result(60)
        assert (outcome.reason, outcome.exit_code) == (Reason.FAILED, 7)
        assert run.log == COUNTED

    def test_connections_that_break_and_come_back_cost_nothing(self, behind_proxy, proxy):
        run = behind_proxy.script(COUNTING)
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(run.to_end)
            for mark in (b"line 5\n", b"line 15\n", b"line 25\n"):
                eventually(partial(run.says, mark), "the run is followed")
                proxy.cut()
                proxy.restore()
            assert future.result(60).exit_code == 7
        assert run.log == COUNTED

    def test_a_watcher_can_let_go_while_it_is_away(self, behind_proxy, proxy):
        run = behind_proxy.script(COUNTING)

        def cut_then_detach():
            if b"line 3\n" not in run.log:
                return None
            proxy.cut()
            return Stop.DETACH

        with pytest.raises(Detached):
            run.to_end(cut_then_detach)
        proxy.restore()
        assert run.to_end(attach_only=True).exit_code == 7
        assert run.log == COUNTED


def behind_proxy_is_running(run) -> bool:
    with closing(docker.APIClient(version="auto")) as client:
        return bool(client.inspect_container(run.spec.name)["State"]["Running"])


class TestManyAtOnce:
    RUNS = 12
    WATCHED_S = 6.0

    def test_they_cost_no_polling_each_and_end_right_though_no_event_comes(
        self, behind_proxy, proxy, tmp_path
    ):
        proxy.mute_events = True
        wait_here = Volume(kind=VolumeKind.SOURCE, name=str(tmp_path), target="/here")
        script = "echo $NUMBER; until [ -e /here/go ]; do sleep 0.1; done; exit $NUMBER"
        runs = [
            behind_proxy.script(script, env={"NUMBER": str(number)}, volumes=(wait_here,))
            for number in range(self.RUNS)
        ]
        with ThreadPoolExecutor(self.RUNS) as pool:
            futures = [pool.submit(run.to_end) for run in runs]
            for number, run in enumerate(runs):
                eventually(partial(run.says, b"%d\n" % number), "it runs")
            before = len(proxy.requests)
            time.sleep(self.WATCHED_S)
            assert len(proxy.requests) - before <= 2, proxy.requests[before:]
            (tmp_path / "go").touch()
            outcomes = [future.result(60) for future in futures]
        assert [outcome.exit_code for outcome in outcomes] == list(range(self.RUNS))
        assert [run.log for run in runs] == [b"%d\n" % number for number in range(self.RUNS)]


class TestImages:
    def test_an_image_that_cannot_be_had_is_its_own_reason(self, docker_bench):
        outcome = docker_bench.run("true", image="127.0.0.1:1/none:1", start_timeout_s=1).to_end()
        assert outcome.reason is Reason.IMAGE_PULL_FAILED
        assert "127.0.0.1:1/none:1" in outcome.message
        assert "refused" in outcome.message

    def test_a_registry_that_says_nothing_is_given_up(self, docker_bench):
        with closing(socket.create_server(("127.0.0.1", 0))) as silent:
            image = f"127.0.0.1:{silent.getsockname()[1]}/never:1"
            outcome = docker_bench.run("true", image=image, start_timeout_s=0.5).to_end()
        assert outcome.reason is Reason.IMAGE_PULL_FAILED
        assert "within 0.5 s" in outcome.message

    def test_a_name_that_is_none_is_a_start_failure(self, docker_bench):
        outcome = docker_bench.run("true", image="Not A Name").to_end()
        assert outcome.reason in (Reason.START_FAILED, Reason.IMAGE_PULL_FAILED)

    def test_no_image_is_a_start_failure(self, docker_bench):
        outcome = docker_bench.run("true", image="").to_end()
        assert (outcome.reason, outcome.exit_code) == (Reason.START_FAILED, None)

    def test_an_image_without_a_command_needs_one(self, docker_bench):
        outcome = docker_bench.run().to_end()
        assert outcome.reason is Reason.START_FAILED
        assert "command" in outcome.message.lower()


class TestStart:
    def test_a_user_that_is_not_there_is_a_start_failure_and_leaves_nothing(self, docker_bench):
        run = docker_bench.run("true", user="nosuchuser")
        outcome = run.to_end()
        assert outcome.reason is Reason.START_FAILED
        assert "nosuchuser" in outcome.message
        assert run.spec.name not in docker_bench.runtime.owned()

    def test_a_container_that_was_made_but_never_started_is_started(self, docker_bench, engine):
        run = docker_bench.script("echo late")
        engine.create_container(
            run.spec.image, list(run.spec.argv), name=run.spec.name, labels={LABEL_MANAGED: "true"}
        )
        assert docker_bench.runtime.attach(run.spec.name) is None
        assert run.to_end().reason is Reason.SUCCEEDED
        assert run.log == b"late\n"

    def test_labels_are_set_and_find_it(self, docker_bench, engine):
        run = docker_bench.run("true", labels={"punctual.owner": "data-engineering"})
        docker_bench.runtime.launch(run.spec)
        labels = engine.inspect_container(run.spec.name)["Config"]["Labels"]
        assert labels["punctual.owner"] == "data-engineering"
        assert run.spec.name in docker_bench.runtime.owned()


class TestSafeDefaults:
    def test_one_that_somebody_renames_is_found_and_removed(self, docker_bench, engine):
        labels = {LABEL_NAMESPACE: uuid.uuid4().hex, LABEL_ATTEMPT: "1"}
        run = docker_bench.script("exit 3")
        run.spec = replace(run.spec, labels={**labels, LABEL_EXECUTION: str(run.id)})
        docker_bench.runtime.launch(run.spec)
        engine.rename(run.spec.name, "renamed-" + run.spec.name)
        assert docker_bench.runtime.owned(labels[LABEL_NAMESPACE]) == [run.spec.name]
        assert run.to_end(attach_only=True).exit_code == 3
        docker_bench.runtime.forget(run.spec.name)
        assert docker_bench.runtime.owned(labels[LABEL_NAMESPACE]) == []

    def test_no_capability_and_no_new_privilege(self, docker_bench):
        run = docker_bench.script("grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs)' /proc/self/status")
        run.to_end()
        values = dict(line.split(":\t") for line in run.log.decode().splitlines())
        assert values == {"CapEff": "0" * 16, "CapPrm": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1"}

    def test_the_root_is_read_only_and_tmp_is_not(self, docker_bench):
        run = docker_bench.script("echo a >/tmp/a && cat /tmp/a; echo b >/b || echo refused")
        run.to_end()
        assert {"a", "refused"} <= set(run.log.decode().splitlines())

    def test_a_volume_at_tmp_is_what_is_written_to(self, docker_bench, tmp_path):
        (tmp_path / "tmp").mkdir(mode=0o777)
        (tmp_path / "tmp").chmod(0o777)
        (tmp_path / "below").mkdir()
        volumes = (
            Volume(kind=VolumeKind.SOURCE, name=str(tmp_path / "tmp"), target="/tmp", read_only=False),
            Volume(kind=VolumeKind.SOURCE, name=str(tmp_path / "below"), target="/data/deep/below"),
            Volume(kind=VolumeKind.SCRATCH, size_bytes=1024**2, target="/data"),
        )
        script = "echo kept >/tmp/a; echo b >/data/b; test -d /data/deep/below && echo seen"
        run = docker_bench.script(script, volumes=volumes)
        run.to_end()
        assert (tmp_path / "tmp/a").read_text() == "kept\n"
        assert run.log == b"seen\n"

    def test_memory_without_swap_cpus_and_user_are_as_asked(self, docker_bench, engine):
        run = docker_bench.run("id", "-u", memory_bytes=32 * 1024**2, cpus=0.5, user="nobody")
        run.to_end()
        host = engine.inspect_container(run.spec.name)["HostConfig"]
        assert (host["Memory"], host["MemorySwap"]) == (32 * 1024**2, 32 * 1024**2)
        assert host["NanoCpus"] == 500_000_000
        assert run.log == b"65534\n"

    def test_the_network_can_be_none(self, docker_bench):
        run = docker_bench.script("ls /sys/class/net", network="none")
        run.to_end()
        assert run.log == b"lo\n"


def test_out_of_memory_is_told_apart_or_at_least_suggested(docker_bench):
    """The flag, the event and the end come from the engine on separate paths; rarely both are missing."""
    runs = [docker_bench.script(HUGE, memory_bytes=16 * 1024**2) for _ in range(8)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda run: run.to_end(), runs))
    told = [outcome for outcome in outcomes if outcome.reason is Reason.OUT_OF_MEMORY]
    assert len(told) >= 4, outcomes
    assert all("more memory than its limit of 16 MiB" in outcome.message for outcome in outcomes)


HUGE = "head -c 64m /dev/zero | tail -c 60m >/dev/null"
ALL_BYTES = "".join(f"\\{number:03o}" for number in range(256))


class TestNastyRuns:
    """All at once, beside one that is well-behaved: each has its reason, and nobody else notices."""

    MEMORY = 16 * 1024**2

    def test_each_ends_for_its_reason_and_the_engine_and_the_others_go_on(self, docker_bench):
        script = docker_bench.script
        runs = {
            "good": script("sleep 2; echo well"),
            "memory": script(HUGE, memory_bytes=self.MEMORY),
            **{
                f"child {number}": script(f"({HUGE}); exit 0", memory_bytes=self.MEMORY)
                for number in range(3)
            },
            "forks": script("f() { f | f & f; }; f", pids_limit=50, timeout_s=2, memory_bytes=64 * 1024**2),
            "forks on": script("while :; do (sleep 9 &); done 2>/dev/null", pids_limit=50, timeout_s=2),
            "tmp": script("cat /dev/zero >/tmp/big"),
            "small tmp": script("head -c 2m /dev/zero >/tmp/big; ls -l /tmp/big", ephemeral_bytes=1024**2),
            "deaf": script("trap '' TERM; echo deaf; while :; do sleep 0.1; done", timeout_s=1),
            "binary": script(f"for i in 1 2 3 4; do printf '{ALL_BYTES}'; done"),
        }
        with ThreadPoolExecutor(len(runs)) as pool:
            futures = {name: pool.submit(run.to_end) for name, run in runs.items()}
            ends = {name: future.result(120) for name, future in futures.items()}
        assert (ends["good"].reason, runs["good"].log) == (Reason.SUCCEEDED, b"well\n")
        assert "more memory than its limit of 16 MiB" in ends["memory"].message
        # One in a hundred leaves neither flag nor event behind (Docker 20.10), and nothing shows it then.
        children = [(ends[name].reason, ends[name].exit_code) for name in runs if name.startswith("child")]
        assert {code for _, code in children} == {0}
        assert (Reason.OUT_OF_MEMORY, 0) in children, children
        assert ends["forks"].reason in (Reason.FAILED, Reason.TIMED_OUT)
        assert ends["forks on"].reason is Reason.TIMED_OUT
        assert (ends["tmp"].reason, b"No space left" in runs["tmp"].log) == (Reason.FAILED, True)
        assert b" 1048576 " in runs["small tmp"].log
        assert (ends["deaf"].reason, ends["deaf"].exit_code) == (Reason.TIMED_OUT, 137)
        assert (ends["binary"].reason, runs["binary"].log) == (Reason.SUCCEEDED, bytes(range(256)) * 4)
        assert all(docker_bench.processes(run) == set() for run in runs.values())

    def test_what_the_engine_cannot_hold_is_refused_in_words_that_help(self, docker_bench):
        claim = Volume(kind=VolumeKind.CLAIM, name="data", target="/data")
        nowhere = Volume(kind=VolumeKind.SOURCE, name="/nowhere/at/all", target="/data")
        refused: dict[str, dict[str, Any]] = {
            "cannot limit the size of a root": {"read_only_root": False, "ephemeral_bytes": 10**7},
            "no GPU": {"gpus": 1},
            r"volumes: claim.*\(/data\)": {"volumes": (claim,)},
            "/nowhere/at/all": {"volumes": (nowhere,)},
            "CPUs": {"cpus": 4000.0},
            "nosuchnetwork": {"network": "nosuchnetwork"},
        }
        runs = {words: docker_bench.run("true", **asked) for words, asked in refused.items()}
        for words, run in runs.items():
            outcome = run.to_end()
            assert (outcome.reason, outcome.exit_code) == (Reason.START_FAILED, None), outcome
            assert re.search(words, outcome.message)
        assert not {run.spec.name for run in runs.values()} & set(docker_bench.runtime.owned())

    def test_what_docker_has_nothing_like_is_said_in_the_log(self, docker_bench):
        run = docker_bench.run("true", node_selector={"disk": "ssd"}, pull_secret="registry")
        assert run.to_end().reason is Reason.SUCCEEDED
        assert run.log.endswith(b"Docker has nothing like nodeSelector, pullSecret: ignored here\n")


def test_a_secret_that_the_other_stream_breaks_into_is_masked(docker_bench):
    """The engine gives 16 KiB of a line at once, and what is on stderr before the line has ended."""
    secret = Secret("TOKEN", "team/token", "correct-horse-battery-staple")
    script = (
        'head -c 16375 /dev/zero | tr "\\0" x; printf %s "$TOKEN"; sleep 0.3; echo err >&2; sleep 0.3; echo;'
        "printf out; printf err >&2"
    )
    run = docker_bench.script(script, secrets=(secret,))
    assert run.to_end().reason is Reason.SUCCEEDED
    whole, rest, end = run.log.removeprefix(b"x" * 16375).splitlines()
    assert (whole, rest) == (b"*" * 9 + b"err", b"*" * 19)
    assert end in (b"outerr", b"errout")
