"""``manage.py standalone`` interrupted while it starts: no traceback, nothing left, the next start works."""

from __future__ import annotations

import re
import shutil
import signal
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.system import System
from tests.processes import PROC, text_of

# The last line that is out when the signal comes; the first is before Python has read any settings.
MOMENTS = {
    "python": "",
    "state": "Punctual keeps its state",
    "initdb": "making the database",
    "made": "the database is made",
    "servers": "starting PostgreSQL",
    "migrating": "migrating the database",
    "processes": "starting recorder",
    "up": "everything is up",
}


@pytest.fixture
def home() -> Iterator[Path]:
    folder = Path(tempfile.mkdtemp(prefix="punctual-early-"))
    yield folder / "home"
    shutil.rmtree(folder)


def processes_of(home: Path) -> list[str]:
    """Command lines of all that carry the folder in their environment or their words."""
    found = []
    for folder in PROC.glob("[0-9]*"):
        words = text_of(folder / "cmdline")
        if str(home) in words or str(home) in text_of(folder / "environ"):
            found.append(words.replace("\0", " "))
    return found


def interpreter_listens(pid: int) -> bool:
    """It holds requests back or heeds them; before, while Python itself starts, the kernel ends it."""
    status = text_of(PROC / str(pid) / "status")
    if not status:
        return True
    masks = re.findall(r"^Sig(?:Blk|Cgt):\t(\w+)$", status, re.MULTILINE)
    return bool(int(masks[0], 16) & 1 << signal.SIGTERM - 1 or int(masks[1], 16) & 1 << signal.SIGTERM - 1)


def reach(system: System, moment: str) -> None:
    if line := MOMENTS[moment]:
        system.wait_for(line)
        return
    while not interpreter_listens(system.process.pid):
        time.sleep(0.001)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM], ids=lambda number: number.name)
def test_a_start_that_is_interrupted_at_any_moment_leaves_nothing(home: Path, number: signal.Signals) -> None:
    """One folder for all moments: each next start goes on with what the one before has left."""
    for moment in MOMENTS:
        if moment in {"initdb", "made"} and (home / "postgresql-data").exists():
            shutil.rmtree(home)
        system = System(home, PUNCTUAL_RUNTIME="process")
        reach(system, moment)
        assert system.stop(number) == 0, (moment, system.output)
        assert "Traceback" not in system.output, (moment, system.output)
        assert system.output.endswith("stopped\n"), (moment, system.output)
        assert "killed" not in system.output, (moment, system.output)
        assert processes_of(home) == [], moment
    last = System(home, PUNCTUAL_RUNTIME="process")
    last.wait_for("everything is up")
    assert last.stop() == 0


def test_a_start_that_is_interrupted_twice_ends_at_once_and_the_next_one_works(home: Path) -> None:
    for moment in ("initdb", "servers", "migrating", "processes"):
        system = System(home, PUNCTUAL_RUNTIME="process")
        reach(system, moment)
        system.process.send_signal(signal.SIGINT)
        time.sleep(0.55)  # sooner, it is the same request
        try:
            code = system.stop(signal.SIGINT)
        except ProcessLookupError:
            code = system.wait()
        assert code in {0, 130}, (moment, system.output)
        assert "Traceback" not in system.output, (moment, system.output)
        assert processes_of(home) == [], moment
    last = System(home, PUNCTUAL_RUNTIME="process")
    last.wait_for("everything is up")
    assert last.stop() == 0
