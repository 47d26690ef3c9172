"""An engine behind SSH: its socket, brought here by the ``ssh`` program.

DOCKER_HOST=ssh://user@host:22 means the engine's socket on that host (or the path that the address
ends with). The user's ssh configuration, keys and known hosts are what counts; nobody is asked for a
password. One connection carries all requests, and what comes through it is an ordinary Unix socket,
so that streams can be ended as those of a local engine can.
"""

from __future__ import annotations

import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path
from urllib.parse import urlsplit

from containers.outcome import one_line
from scheduler_project.kernel.clock import monotonic

SCHEME = "ssh"
REMOTE_SOCKET = "/var/run/docker.sock"
OPENS_WITHIN_S = 20.0
OPTIONS = (
    "BatchMode=yes",
    "ExitOnForwardFailure=yes",
    "StreamLocalBindUnlink=yes",
    "ServerAliveInterval=10",
    "ServerAliveCountMax=3",
)
UNTIL_WE_END = "cat >/dev/null"  # reads our end of a pipe: no connection outlives its worker


class Tunnel:
    """Opened on first use, and again when it has broken. For several threads at a time."""

    def __init__(self, address: str) -> None:
        self._address = address
        self._lock = threading.Lock()
        self._folder: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None

    def socket_url(self) -> str:
        """Where the engine is to be found now. Raises OSError with what ssh says."""
        with self._lock:
            if self._folder is None:
                self._folder = Path(tempfile.mkdtemp(prefix="punctual-ssh-"))
            path = self._folder / "engine.sock"
            if self._process is None or self._process.poll() is not None:
                self._close_process()
                self._open(path)
            return f"unix://{path}"

    def close(self) -> None:
        with self._lock:
            self._close_process()
            if self._folder is not None:
                shutil.rmtree(self._folder, ignore_errors=True)
                self._folder = None

    def _open(self, path: Path) -> None:
        path.unlink(missing_ok=True)
        complaints = path.with_name("complaints")
        with complaints.open("wb") as file:
            self._process = subprocess.Popen(
                ssh_command(self._address, path),
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
                stderr=file,
                start_new_session=True,
            )
        deadline = monotonic() + OPENS_WITHIN_S
        while not _listens(path):
            if self._process.poll() is not None or monotonic() >= deadline:
                self._close_process()
                raise OSError(one_line(complaints.read_text(errors="replace")) or "ssh does not connect")
            threading.Event().wait(0.02)

    def _close_process(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()
            if process.stdin is not None:
                process.stdin.close()


def ssh_command(address: str, path: Path) -> list[str]:
    """What brings the engine's socket at ``address`` (as DOCKER_HOST has it) to ``path`` (pure)."""
    parts = urlsplit(address)
    words = ["ssh", "-T", "-L", f"{path}:{parts.path or REMOTE_SOCKET}"]
    words += [word for option in OPTIONS for word in ("-o", option)]
    words += ["-l", parts.username] if parts.username else []
    words += ["-p", str(parts.port)] if parts.port else []
    return [*words, "--", parts.hostname or "", UNTIL_WE_END]


def _listens(path: Path) -> bool:
    with socket.socket(socket.AF_UNIX) as knocking:
        return knocking.connect_ex(str(path)) == 0
