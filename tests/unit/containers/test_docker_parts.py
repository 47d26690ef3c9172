from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import replace
from datetime import UTC, datetime

import pytest
from docker.types import DeviceRequest, Mount
from hypothesis import given
from hypothesis import strategies as st

from containers.docker.engine import DockerOptions
from containers.docker.following import PARTIAL_BYTES, Frame, frames, mend
from containers.docker.manifest import container_settings, host_settings, ignored, instant
from containers.docker.progress import Failure, PullProgress, failure
from containers.docker.runtime import DockerRuntime
from containers.logs.stamps import Stream
from containers.runtime import LaunchFailed
from containers.spec import ContainerSpec
from containers.volumes import Volume, VolumeKind
from scheduler_project.kernel.clock import from_micros

SPEC = ContainerSpec(
    name="run",
    argv=("python", "x.py"),
    image="python:3.12",
    env={"A": "b"},
    labels={"punctual.owner": "team"},
    memory_bytes=64 * 1024**2,
    cpus=1.5,
)


def test_what_is_asked_of_the_engine():
    assert container_settings(SPEC) == {
        "image": "python:3.12",
        "command": ["python", "x.py"],
        "name": "run",
        "environment": {"A": "b"},
        "working_dir": None,
        "labels": {"punctual.owner": "team", "punctual.managed": "true"},
        "user": None,
        "use_config_proxy": False,
    }
    assert host_settings(SPEC, DockerOptions()) == {
        "network_mode": "bridge",
        "init": True,
        "read_only": True,
        "tmpfs": {"/tmp": "rw,exec,nosuid,nodev,mode=1777,size=268435456"},
        "cap_drop": ["ALL"],
        "security_opt": ["no-new-privileges:true"],
        "pids_limit": 1024,
        "log_config": {"Type": "local", "Config": {"max-size": "67108864", "max-file": "4"}},
        "mem_limit": 67108864,
        "memswap_limit": 67108864,
        "nano_cpus": 1_500_000_000,
    }


def test_no_limit_is_no_limit():
    settings = host_settings(ContainerSpec(name="run"), DockerOptions())
    assert not {"mem_limit", "memswap_limit", "nano_cpus"} & set(settings)
    assert container_settings(ContainerSpec(name="run"))["command"] is None


def test_all_that_docker_can_hold_is_asked_for():
    spec = ContainerSpec(
        name="run",
        memory_request_bytes=32 * 1024**2,
        cpus_request=0.5,
        gpus=2,
        ephemeral_bytes=5 * 1024**2,
        network="none",
        volumes=(
            Volume(kind=VolumeKind.SOURCE, name="/srv/data", target="/data"),
            Volume(kind=VolumeKind.VOLUME, name="cache", target="/cache", read_only=False),
            Volume(kind=VolumeKind.SCRATCH, target="/scratch", size_bytes=1024**2),
        ),
    )
    settings = host_settings(spec, DockerOptions())
    assert (settings["mem_reservation"], settings["cpu_shares"]) == (33554432, 512)
    assert settings["device_requests"] == [DeviceRequest(count=2, capabilities=[["gpu"]])]
    assert settings["network_mode"] == "none"
    assert settings["tmpfs"] == {
        "/tmp": "rw,exec,nosuid,nodev,mode=1777,size=5242880",
        "/scratch": "rw,exec,nosuid,nodev,mode=1777,size=1048576",
    }
    assert settings["mounts"] == [
        Mount("/data", "/srv/data", type="bind", read_only=True),
        Mount("/cache", "cache", type="volume", read_only=False),
    ]
    assert "storage_opt" not in settings
    writable = host_settings(replace(spec, read_only_root=False), DockerOptions())
    assert writable["storage_opt"] == {"size": "5242880"}
    assert "size=268435456" in writable["tmpfs"]["/tmp"]


@pytest.mark.parametrize("kind", [VolumeKind.SOURCE, VolumeKind.VOLUME, VolumeKind.SCRATCH])
def test_where_a_volume_is_at_tmp_nothing_else_is(kind):
    size = 1024**2 if kind is VolumeKind.SCRATCH else None
    volume = Volume(kind=kind, name="" if size else "/srv", target="/tmp", read_only=False, size_bytes=size)
    settings = host_settings(ContainerSpec(name="run", volumes=(volume,)), DockerOptions())
    tmpfs = {"/tmp": "rw,exec,nosuid,nodev,mode=1777,size=1048576"} if size else {}
    assert (settings["tmpfs"], "mounts" in settings) == (tmpfs, not size)


@given(st.floats(0.01, 1e6))
def test_any_request_of_cpus_is_one_that_the_kernel_takes(cpus):
    shares = host_settings(ContainerSpec(name="run", cpus_request=cpus), DockerOptions())["cpu_shares"]
    assert 2 <= shares <= 262_144


def test_what_only_kubernetes_has_is_refused_by_name_or_where_it_only_guides_ignored():
    claim = Volume(kind=VolumeKind.CLAIM, name="data", target="/data")
    scratch = Volume(kind=VolumeKind.SCRATCH, target="/s", size_bytes=1)
    spec = ContainerSpec(
        name="run",
        image="busybox",
        volumes=(claim, scratch),
        service_account="loader",
        pod_template={"spec": {}},
        node_selector={"disk": "ssd"},
        pull_secret="x",
    )
    with pytest.raises(LaunchFailed) as refused:
        DockerRuntime().launch(spec)
    wishes = "volumes: claim, configMap, secret (/data), serviceAccount ('loader'), podTemplate (spec)"
    assert wishes in refused.value.message
    assert ignored(spec) == ["nodeSelector", "pullSecret"]
    assert ignored(SPEC) == []


@pytest.mark.parametrize(
    ("words", "kind"),
    [
        ("toomanyrequests: You have reached your pull rate limit. denied", Failure.RATE_LIMITED),
        ("received unexpected HTTP status: 429 Too Many Requests", Failure.RATE_LIMITED),
        (
            "pull access denied for x, repository does not exist or may require 'docker login'",
            Failure.UNAUTHORISED,
        ),
        ('Get "https://r/v2/": unauthorized: authentication required', Failure.UNAUTHORISED),
        ("manifest for busybox:none not found: manifest unknown", Failure.MISSING),
        ("no matching manifest for linux/arm64 in the manifest list entries", Failure.MISSING),
        ("dial tcp: lookup registry.invalid: no such host", Failure.MISSING),
        ("dial tcp 127.0.0.1:1: connect: connection refused", Failure.TRANSIENT),
        ("net/http: TLS handshake timeout", Failure.TRANSIENT),
        ("received unexpected HTTP status: 503 Service Unavailable", Failure.TRANSIENT),
        ("unexpected EOF", Failure.TRANSIENT),
        ("no space left on device", Failure.OTHER),
        ("invalid reference format", Failure.OTHER),
    ],
)
def test_what_a_failed_pull_means(words, kind):
    assert failure(words) is kind


def test_the_progress_of_a_pull_in_words():
    progress = PullProgress()
    assert str(progress) == "the registry has not answered yet"
    for layer in ("a", "b"):
        progress.take({"status": "Pulling fs layer", "id": layer, "progressDetail": {}})
    progress.take({"status": "Pulling from x", "id": "latest"})
    progress.take({"status": "Digest: sha256:1"})
    assert str(progress) == "0 of 2 layers"
    progress.take(
        {"status": "Downloading", "id": "a", "progressDetail": {"current": 1048576, "total": 4194304}}
    )
    assert str(progress) == "0 of 2 layers, 1.0 of 4.0 MiB"
    progress.take({"status": "Pull complete", "id": "a"})
    progress.take({"status": "Already exists", "id": "b"})
    assert str(progress) == "2 of 2 layers, 4.0 of 4.0 MiB"


def test_the_engines_nanoseconds_are_read():
    assert instant("2026-12-24T18:00:00.123456789Z") == datetime(2026, 12, 24, 18, 0, 0, 123456, UTC)


def as_the_local_driver_gives_back(output: bytes) -> list[Frame]:
    """Entries of at most 16 KiB; of a line in several entries, the newline is lost."""
    entries = []
    for line in output.splitlines(keepends=True):
        if len(line.rstrip(b"\n")) < PARTIAL_BYTES:
            entries.append(line)
        else:
            text = line.rstrip(b"\n")
            entries += [text[at : at + PARTIAL_BYTES] for at in range(0, len(text) + 1, PARTIAL_BYTES)]
    return [Frame(1_700_000_000_123_456 + place, Stream.STDOUT, entry) for place, entry in enumerate(entries)]


def joined(given: Iterable[Frame]) -> bytes:
    return b"".join(frame.data for frame in given)


LENGTHS = st.one_of(st.integers(0, 50_000), st.integers(0, 3).map(lambda count: count * PARTIAL_BYTES))


@given(lengths=st.lists(LENGTHS, max_size=6))
def test_lost_line_ends_are_put_back(lengths):
    output = b"".join(b"x" * length + b"\n" for length in lengths) + b"last\n"
    assert joined(mend(as_the_local_driver_gives_back(output))) == output


def test_an_end_without_a_newline_stays_so():
    assert joined(mend([Frame(0, Stream.STDOUT, b"a\n"), Frame(1, Stream.STDERR, b"end")])) == b"a\nend"
    assert joined(mend([Frame(0, Stream.STDOUT, b"a"), Frame(1, Stream.STDERR, b"b")])) == b"ab"


def test_lines_of_both_streams_end_where_they_did():
    part = Frame(0, Stream.STDOUT, b"x" * PARTIAL_BYTES)
    given = [
        part,
        Frame(1, Stream.STDERR, b"err\n"),
        part._replace(data=b"y"),
        Frame(2, Stream.STDERR, b"end"),
    ]
    assert joined(mend(given)) == part.data + b"err\ny\nend"


def as_it_is_sent(frame: Frame) -> bytes:
    at = from_micros(frame.micros)
    text = f"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond:06d}789Z ".encode() + frame.data
    return struct.pack(">BxxxL", frame.stream, len(text)) + text


FRAMES = st.lists(
    st.builds(
        Frame, st.integers(0, 2**51), st.sampled_from([Stream.STDOUT, Stream.STDERR]), st.binary(max_size=9)
    ),
    max_size=8,
)


@given(sent=FRAMES, size=st.integers(1, 100))
def test_frames_are_read_whatever_pieces_they_come_in(sent, size):
    raw = b"".join(map(as_it_is_sent, sent))
    assert list(frames(raw[at : at + size] for at in range(0, len(raw), size))) == sent
    assert list(frames([raw[:-1]])) == sent[:-1]
