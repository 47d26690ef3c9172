"""What only a container engine can do, and what only it can get wrong."""

from __future__ import annotations

import gc
import socket
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from functools import partial

import docker
import pytest

from containers.docker import DockerOptions, DockerRuntime
from containers.outcome import Reason
from containers.registry import detect
from containers.runtime import RuntimeUnavailable
from containers.spec import LABEL_MANAGED
from containers.supervise import Detached, Stop
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


class TestImages:
    def test_an_image_that_cannot_be_had_is_its_own_reason(self, docker_bench):
        outcome = docker_bench.run("true", image="127.0.0.1:1/none:1").to_end()
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
    def test_no_capability_and_no_new_privilege(self, docker_bench):
        run = docker_bench.script("grep -E '^(CapEff|CapPrm|CapBnd|NoNewPrivs)' /proc/self/status")
        run.to_end()
        values = dict(line.split(":\t") for line in run.log.decode().splitlines())
        assert values == {"CapEff": "0" * 16, "CapPrm": "0" * 16, "CapBnd": "0" * 16, "NoNewPrivs": "1"}

    def test_the_root_is_read_only_and_tmp_is_not(self, docker_bench):
        run = docker_bench.script("echo a >/tmp/a && cat /tmp/a; echo b >/b || echo refused")
        run.to_end()
        assert {"a", "refused"} <= set(run.log.decode().splitlines())

    def test_a_full_tmp_is_a_failure_of_the_run_alone(self, docker_bench):
        outcome = docker_bench.script("head -c 300m /dev/zero >/tmp/big").to_end()
        assert outcome.reason is Reason.FAILED

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
    eater = "head -c 64m /dev/zero | tail -c 60m >/dev/null"
    runs = [docker_bench.script(eater, memory_bytes=16 * 1024**2) for _ in range(8)]
    with ThreadPoolExecutor(4) as pool:
        outcomes = list(pool.map(lambda run: run.to_end(), runs))
    told = [outcome for outcome in outcomes if outcome.reason is Reason.OUT_OF_MEMORY]
    assert len(told) >= 4, outcomes
    assert all("more memory than its limit of 16 MiB" in outcome.message for outcome in outcomes)
