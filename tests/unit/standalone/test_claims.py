"""The folder, the lock and the port: one clear line where they cannot be had."""

from __future__ import annotations

import os
import socket

import pytest

from scheduler_project.standalone.claims import (
    Refused,
    claim_home,
    claim_lock,
    claim_port,
    socket_folder,
)


def test_a_missing_folder_is_made_for_its_owner_alone(tmp_path):
    home = tmp_path / "a" / "b"
    claim_home(home)
    assert home.stat().st_mode & 0o777 == 0o700


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for home in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(Refused, match=r"PUNCTUAL_HOME: .* is no folder") as caught:
            claim_home(home)
        assert "\n" not in caught.value.message


def test_a_folder_that_cannot_be_written_is_refused():
    with pytest.raises(Refused, match=r"PUNCTUAL_HOME: /proc/punctual cannot be written"):
        claim_home(_path("/proc/punctual"))


def test_a_second_start_on_the_same_folder_is_refused_by_name(tmp_path):
    held = claim_lock(tmp_path)
    with pytest.raises(Refused, match=rf"already runs on .*process {os.getpid()}\)"):
        claim_lock(tmp_path)
    os.close(held)
    os.close(claim_lock(tmp_path))


def test_a_busy_port_is_refused_with_its_number():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        with pytest.raises(Refused, match=rf"PUNCTUAL_PORT: port {port} of 127.0.0.1 is in use"):
            claim_port(port)
    claim_port(port).close()


def test_sockets_lie_in_the_folder_or_where_their_path_is_short_enough(tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "t"))
    (tmp_path / "t").mkdir()
    short = _path("/tmp") / f"punctual-test-{os.getpid()}"
    short.mkdir()
    try:
        assert socket_folder(short, "valkey") == short / "valkey"
        assert (short / "valkey").stat().st_mode & 0o777 == 0o700
    finally:
        (short / "valkey").rmdir()
        short.rmdir()
    deep = tmp_path / ("x" * 100)
    deep.mkdir()
    found = socket_folder(deep, "valkey")
    assert found.parent == tmp_path / "t"
    assert found == socket_folder(deep, "valkey")
    assert found != socket_folder(deep, "postgresql")


def test_a_folder_for_sockets_that_others_can_enter_is_refused(tmp_path):
    (tmp_path / "valkey").mkdir(mode=0o755)
    (tmp_path / "valkey").chmod(0o755)
    with pytest.raises(Refused, match="is not ours alone"):
        socket_folder(tmp_path, "valkey")


def _path(text: str):
    from pathlib import Path

    return Path(text)
