"""The processes of a deployment, started as one would start them, each with a log file of its own."""

from __future__ import annotations

import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from scheduler_project.kernel.errors import PunctualError

ROOT = Path(__file__).resolve().parents[2]
NOWHERE = "postgresql://nobody@127.0.0.1:1/nowhere"
BIN = Path(sys.executable).parent

_CELERY = [str(BIN / "celery"), "-A", "scheduler_project"]
COMMANDS: dict[str, list[str]] = {
    "beat": [*_CELERY, "beat", "-l", "INFO"],
    "worker": [*_CELERY, "worker", "-l", "INFO", "-n", "{name}@%h"],
    "maintenance": [*_CELERY, "worker", "-Q", "maintenance", "-l", "INFO"],
    "recorder": [sys.executable, "manage.py", "record_events"],
    "auditor": [sys.executable, "manage.py", "audit_events"],
    "web": [str(BIN / "waitress-serve"), "--listen=127.0.0.1:{port}", "scheduler_project.wsgi:application"],
}
# What a process writes once it is up.
UP = {
    "beat": "shards_changed",
    "worker": " ready.",
    "maintenance": " ready.",
    "recorder": "started service",
    "auditor": "started service",
    "web": "Serving on",
}


def command_of(name: str, port: int = 0) -> list[str]:
    """What starts the process called ``name``; ``port``: of the web server."""
    return [part.format(name=name, port=port) for part in COMMANDS[name.rstrip("0123456789")]]


def environment_of(kind: str, env: Mapping[str, str]) -> dict[str, str]:
    """That of a system, as this kind of process is given it: a worker knows no database."""
    return {**env, **({"DATABASE_URL": NOWHERE} if kind == "worker" else {})}


class EndedEarly(PunctualError):
    """A process ended before it was up."""


class Process:
    """One started process of the system; its output is in ``log``. ``name``: its kind and a number."""

    def __init__(self, name: str, command: Sequence[str], env: Mapping[str, str], log: Path) -> None:
        self.name = name
        self.kind = name.rstrip("0123456789")
        self.log = log
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                command, cwd=ROOT, env=dict(env), stdin=subprocess.DEVNULL, stdout=output, stderr=output
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def alive(self) -> bool:
        return self._process.poll() is None

    def kill(self) -> None:
        """kill -9"""
        self._process.kill()
        self._process.wait()

    def stop(self, timeout_s: float = 20.0) -> int:
        """SIGTERM; the exit code. Killed, and an error, where it does not end in time."""
        self._process.terminate()
        return self.wait(timeout_s)

    def wait(self, timeout_s: float) -> int:
        """The exit code. Killed, and an error, where it does not end in time."""
        try:
            return self._process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            self.kill()
            raise

    def signal(self, number: signal.Signals) -> None:
        self._process.send_signal(number)

    @property
    def up(self) -> bool:
        """EndedEarly, with the end of its log, where it ended instead."""
        alive = self.alive  # asked first: what it wrote before its end is there then
        if UP[self.kind] in self.text():
            return True
        if not alive:
            code = self._process.returncode
            raise EndedEarly(f"{self.name} ended with {code} before it was up\n{self.tail()}")
        return False

    def text(self) -> str:
        return self.log.read_text(encoding="utf-8", errors="replace")

    def tail(self) -> str:
        return f"--- {self.name} ({'alive' if self.alive else 'ended'})\n{self.text()[-1500:]}"
