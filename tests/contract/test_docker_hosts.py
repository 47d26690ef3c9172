"""Engines that are not at the local socket: behind TLS and behind SSH, as DOCKER_HOST has them."""

from __future__ import annotations

import os
import socket
from contextlib import closing
from pathlib import Path
from tempfile import gettempdir

import certifi
import pytest

from containers.docker import DockerRuntime
from containers.docker.ssh import ssh_command
from containers.outcome import Reason
from containers.runtime import RuntimeUnavailable
from containers.supervise import Stop
from tests.contract.bench import Bench
from tests.contract.own_engine import OwnEngine, OwnSshServer, certificates, own_engine_trouble
from tests.contract.test_runtime_contract import COUNTED, COUNTING

pytestmark = pytest.mark.docker
FOREVER = "echo ready; while :; do sleep 0.1; done"


def uses_all_of_it(bench: Bench) -> None:
    """Launch, follow, wait, cancel in the middle of a stream, and letting go: all that needs an engine."""
    run = bench.script(COUNTING, network="none")
    assert run.to_end().exit_code == 7
    assert run.log == COUNTED
    endless = bench.script(FOREVER, network="none")
    assert endless.to_end(endless.stop_once_it_says(b"ready", Stop.CANCEL)).reason is Reason.CANCELLED


@pytest.mark.skipif(bool(own_engine_trouble()), reason=own_engine_trouble())
def test_an_engine_behind_tls_is_used_with_the_workers_certificate(tmp_path, monkeypatch):
    with socket.create_server(("127.0.0.1", 0)) as free:
        address = f"tcp://127.0.0.1:{free.getsockname()[1]}"
    options = certificates(tmp_path)
    with closing(OwnEngine()) as engine:
        image = engine.load()
        engine.stop()
        engine.start(f"--host={address}", *options)
        monkeypatch.setenv("DOCKER_HOST", address)
        with closing(DockerRuntime()) as runtime, pytest.raises(RuntimeUnavailable, match=address):
            runtime.ping()
        monkeypatch.setenv("DOCKER_TLS_VERIFY", "1")
        monkeypatch.setenv("REQUESTS_CA_BUNDLE", certifi.where())  # for the web, not for the engine
        monkeypatch.setenv("DOCKER_CERT_PATH", str(tmp_path))
        with closing(Bench("docker", image, tmp_path)) as bench:
            uses_all_of_it(bench)


@pytest.mark.skipif(not Path("/usr/sbin/sshd").exists(), reason="there is no sshd on this machine")
def test_an_engine_behind_ssh_is_used_through_one_connection_that_may_break(tmp_path, busybox, monkeypatch):
    with closing(OwnSshServer(tmp_path)) as server:
        monkeypatch.setenv("DOCKER_HOST", f"ssh://127.0.0.1:{server.port}")
        with closing(DockerRuntime()) as stranger, pytest.raises(RuntimeUnavailable, match="Host key verif"):
            stranger.ping()
        monkeypatch.setenv("PATH", f"{server.program()}:{os.environ['PATH']}")
        with closing(Bench("docker", busybox, tmp_path)) as bench:
            uses_all_of_it(bench)
            run = bench.script(COUNTING)
            broken: list[bool] = []

            def breaks_it() -> None:
                if not broken and run.says(b"line 9\n"):
                    server.end_connections()
                    broken.append(True)

            assert run.to_end(breaks_it).exit_code == 7
            assert (run.log, broken) == (COUNTED, [True])
    assert not list(Path(gettempdir()).glob("punctual-ssh-*/engine.sock"))


def test_an_address_is_read_as_the_docker_program_reads_it():
    words = ssh_command("ssh://deploy@build.example:2222/run/user/1/docker.sock", Path("/here"))
    assert words[:4] == ["ssh", "-T", "-L", "/here:/run/user/1/docker.sock"]
    assert words[-7:] == ["-l", "deploy", "-p", "2222", "--", "build.example", "cat >/dev/null"]
    plain = ssh_command("ssh://build.example", Path("/here"))
    assert "/here:/var/run/docker.sock" in plain
    assert not {"-l", "-p"} & set(plain)
