"""A ``manage.py standalone`` under test: started as people start it, read as they read it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

from scheduler_project.kernel.clock import monotonic
from scheduler_project.standalone.leftovers import birth
from scheduler_project.standalone.options import BASE_DIR
from tests.processes import PROC, text_of
from tests.services import free_port

OWN = ("DATABASE_URL", "REDIS_URL", "BROKER_URL", "SECRET_KEY", "WAREHOUSE_URL", "ALLOWED_HOSTS", "DEBUG")


def environment(home: Path, **more: str) -> dict[str, str]:
    """This process's, without what would point the system at other parts."""
    kept = {
        k: v for k, v in os.environ.items() if k not in OWN and not k.startswith(("PUNCTUAL_", "DJANGO_"))
    }
    blank = dict.fromkeys(OWN, "")  # set, so that a developer's .env does not reach the tests
    return {**kept, **blank, "PUNCTUAL_HOME": str(home), **more}


def manage(home: Path, *words: str, **more: str) -> subprocess.CompletedProcess[str]:
    """``manage.py`` with these words, on another terminal as it were."""
    return subprocess.run(
        [sys.executable, str(BASE_DIR / "manage.py"), *words],
        env=environment(home, **more),
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


class System:
    """One start. Its stdin is closed and its output is a file; it is no terminal's."""

    def __init__(self, home: Path, *words: str, **more: str) -> None:
        self.home = home
        self.port = int(more.get("PUNCTUAL_PORT", free_port()))
        self._output = home.with_name(f"{home.name}.output")
        with self._output.open("w") as output:
            self.process = subprocess.Popen(
                [
                    "sh",
                    "-c",
                    'exec "$@" <&-',
                    "sh",
                    sys.executable,
                    str(BASE_DIR / "manage.py"),
                    "standalone",
                    *words,
                ],
                env=environment(home, **{**more, "PUNCTUAL_PORT": str(self.port)}),
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )

    @property
    def output(self) -> str:
        return self._output.read_text()

    def wait_for(self, pattern: str, timeout_s: float = 60.0) -> re.Match[str]:
        """The first match in the output, as soon as it is there."""
        until = monotonic() + timeout_s
        while True:
            ended = self.process.poll() is not None
            if found := re.search(pattern, self.output, re.MULTILINE):
                return found
            assert not ended, f"it ended with {self.process.returncode}:\n{self.output}"
            assert monotonic() < until, f"no {pattern!r} after {timeout_s} s:\n{self.output}"
            time.sleep(0.05)

    def wait(self, timeout_s: float = 60.0) -> int:
        return self.process.wait(timeout_s)

    def stop(self, number: signal.Signals = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.wait()

    def processes(self) -> dict[int, str]:
        """All that descend from the supervisor, itself too: process id and command line."""
        parents: dict[int, list[int]] = {}
        for stat in PROC.glob("[0-9]*/stat"):
            if text := text_of(stat):
                parents.setdefault(int(text.rpartition(")")[2].split()[1]), []).append(int(stat.parent.name))
        found, todo = {}, [self.process.pid]
        while todo:
            pid = todo.pop()
            found[pid] = text_of(PROC / f"{pid}/cmdline").replace("\0", " ").strip()
            todo += parents.get(pid, [])
        return found

    def child(self, words: str) -> int | None:
        """The process id of the one child whose command line contains ``words``; None: there is none yet."""
        found = [pid for pid, line in self.processes().items() if words in line and pid != self.process.pid]
        assert len(found) <= 1, found
        return found[0] if found else None

    def memory_mb(self) -> float:
        """Proportional set size of the whole tree."""
        total = 0
        for pid in self.processes():
            rollup = text_of(PROC / f"{pid}/smaps_rollup")
            total += sum(int(size) for size in re.findall(r"^Pss: +(\d+) kB$", rollup, re.MULTILINE))
        return total / 1024


def survivors(
    processes: dict[int, str], births: dict[int, str | None], within_s: float = 5.0
) -> dict[int, str]:
    """Which of ``processes`` still live after ``within_s``; ``births`` tells them from later ones."""
    until = monotonic() + within_s
    while True:
        left = {pid: line for pid, line in processes.items() if births[pid] and birth(pid) == births[pid]}
        if not left or monotonic() > until:
            return left
        time.sleep(0.05)
