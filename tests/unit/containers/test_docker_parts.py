from __future__ import annotations

from datetime import UTC, datetime

from hypothesis import given
from hypothesis import strategies as st

from containers.docker.container import PARTIAL_BYTES, mend
from containers.docker.engine import DockerOptions
from containers.docker.manifest import container_settings, host_settings, instant
from containers.spec import ContainerSpec

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


def test_the_engines_nanoseconds_are_read():
    assert instant("2026-12-24T18:00:00.123456789Z") == datetime(2026, 12, 24, 18, 0, 0, 123456, UTC)


def as_the_local_driver_gives_back(output: bytes) -> list[bytes]:
    """Entries of at most 16 KiB; of a line in several entries, the newline is lost."""
    frames = []
    for line in output.splitlines(keepends=True):
        if len(line.rstrip(b"\n")) < PARTIAL_BYTES:
            frames.append(line)
        else:
            text = line.rstrip(b"\n")
            frames += [text[start : start + PARTIAL_BYTES] for start in range(0, len(text), PARTIAL_BYTES)]
    return frames


# Lines whose length is a whole number of entries are left out: nothing tells their end apart.
LENGTHS = st.integers(0, 50_000).filter(lambda length: length == 0 or length % PARTIAL_BYTES)


@given(lengths=st.lists(LENGTHS, max_size=6))
def test_lost_line_ends_are_put_back(lengths):
    output = b"".join(b"x" * length + b"\n" for length in lengths) + b"last\n"
    assert b"".join(mend(as_the_local_driver_gives_back(output))) == output


def test_an_end_without_a_newline_stays_so():
    assert b"".join(mend([b"a\n", b"end"])) == b"a\nend"
