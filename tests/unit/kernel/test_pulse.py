"""Whether a process works: its loops, the file, and the program that a probe calls."""

from __future__ import annotations

import os
import socket
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest
from redis import Redis, RedisError

from scheduler_project.kernel import pulse as pulses
from scheduler_project.kernel.errors import InvalidValue, RetryableError
from scheduler_project.kernel.loop import BackgroundService
from scheduler_project.kernel.pulse import PULSE, Pulse, PulseFile

PROBE = Path(__file__).parents[3] / "deploy" / "punctual-alive"


class Now:
    """The monotonic clock, moved by hand."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


@pytest.fixture
def now(monkeypatch: pytest.MonkeyPatch) -> Now:
    found = Now()
    monkeypatch.setattr(pulses, "monotonic", found)
    return found


def test_a_loop_is_late_when_it_is_not_heard_of_in_time(now: Now) -> None:
    pulse = Pulse()
    pulse.expect("tick", 30.0)
    pulse.expect("planner", 30.0, pause_s=60.0)
    now.seconds += 30.5
    assert pulse.late() == ["tick"]
    now.seconds += 60.0
    assert pulse.late() == ["planner", "tick"]
    pulse.expect("tick", 30.0)
    pulse.excuse("planner")
    assert pulse.late() == []


def test_an_answer_within_a_long_round_is_heard_of_its_own_loop_only(now: Now) -> None:
    pulse = Pulse()
    other = threading.Thread(target=pulse.expect, args=("other", 30.0))
    other.start()
    other.join()
    pulse.expect("loader", 30.0)
    now.seconds += 20.0
    pulse.progress()
    now.seconds += 20.0
    assert pulse.late() == ["other"]


def test_an_answer_outside_of_any_loop_is_nobodys() -> None:
    pulse = Pulse()
    pulse.progress()
    assert pulse.late() == []


@contextmanager
def in_a_thread(
    pulse: Pulse, stand: Callable[[threading.Event], object], pause_s: float = 0.0
) -> Iterator[None]:
    """A loop, ``tick``, whose round is ``stand``, until the event that it is given is set."""
    began, let_go = threading.Event(), threading.Event()

    def run() -> None:
        pulse.expect("tick", 300.0, pause_s)
        began.set()
        stand(let_go)

    thread = threading.Thread(target=run)
    thread.start()
    assert began.wait(10.0)
    threading.Event().wait(0.05)  # until it stands where it is going to
    try:
        yield
    finally:
        let_go.set()
        thread.join()


def looked_at(pulse: Pulse, now: Now, seconds: int, unseen_s: float = 0.0) -> list[str]:
    """Who is late after so many seconds, with a look in each."""
    pulse.watch()
    for _ in range(seconds):
        now.seconds += 1.0 + unseen_s
        pulse.watch(unseen_s)
        threading.Event().wait(0.005)
    return pulse.late(8.0)


def test_a_loop_that_stands_on_one_spot_is_late_long_before_its_deadline(now: Now) -> None:
    pulse = Pulse()
    with in_a_thread(pulse, lambda let_go: let_go.wait(30.0)):
        assert looked_at(pulse, now, 8) == []
        assert looked_at(pulse, now, 1) == ["tick"]


def test_a_pause_is_no_standing_still(now: Now) -> None:
    pulse = Pulse()
    with in_a_thread(pulse, lambda let_go: let_go.wait(30.0), pause_s=60.0):
        assert looked_at(pulse, now, 68) == []
        assert looked_at(pulse, now, 1) == ["tick"]


def test_time_in_which_nothing_of_the_process_ran_is_nobodys_fault(now: Now) -> None:
    pulse = Pulse()
    with in_a_thread(pulse, lambda let_go: let_go.wait(30.0)):
        assert looked_at(pulse, now, 8, unseen_s=100.0) == []
        assert looked_at(pulse, now, 1) == ["tick"]


def test_a_loop_that_waits_for_an_answer_of_redis_has_the_time_of_its_deadline(now: Now) -> None:
    pulse = Pulse()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        client = Redis(port=silent.getsockname()[1], socket_timeout=3.0)

        def ask(_let_go: threading.Event) -> None:
            with suppress(RedisError):
                client.ping()

        with in_a_thread(pulse, ask):
            assert looked_at(pulse, now, 100) == []
            now.seconds += 250.0
            assert pulse.late() == ["tick"]


def test_a_loop_that_computes_does_not_stand_still(now: Now) -> None:
    pulse = Pulse()

    def compute(let_go: threading.Event) -> None:
        while not let_go.is_set():
            sum(1 for _ in range(100))
            hash("a")
            str(1)

    with in_a_thread(pulse, compute):
        assert looked_at(pulse, now, 100) == []


@pytest.fixture
def hangs() -> Iterator[threading.Event]:
    """A service that hangs in its round, in this process, until the event is set."""
    let_go = threading.Event()

    def run_once() -> float:
        let_go.wait(30.0)
        return 60.0

    service = BackgroundService("hangs", run_once, within_s=0.2)
    service.start()
    yield let_go
    let_go.set()
    assert service.stop()
    assert PULSE.late() == []


def wait_for(condition: Callable[[], object]) -> None:
    for _ in range(1000):
        if condition():
            return
        threading.Event().wait(0.01)
    raise AssertionError("not within ten seconds")


def test_a_service_that_hangs_is_late_and_not_when_it_goes_on(hangs: threading.Event) -> None:
    wait_for(lambda: "hangs" in PULSE.late())


def test_a_service_whose_part_is_away_is_not_late() -> None:
    tried = threading.Event()

    def run_once() -> float:
        tried.set()
        raise RetryableError("PostgreSQL is away")

    service = BackgroundService("waits", run_once, within_s=0.5)
    service.start()
    assert tried.wait(5.0)
    assert "waits" not in PULSE.late()
    assert service.stop()


def probe(path: Path) -> tuple[int, str]:
    own = {**os.environ, "PUNCTUAL_ALIVE_FILE": str(path)}
    done = subprocess.run([PROBE], env=own, capture_output=True, text=True, timeout=10, check=False)
    return done.returncode, done.stdout


def test_the_file_is_young_while_no_loop_is_late_and_says_which_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pulses, "PERIOD_S", 0.01)
    path, pulse = tmp_path / "alive", Pulse()
    assert probe(path) == (1, f"there is no {path}: the process has not begun\n")
    pulse.expect("tick", 60.0)
    PulseFile(path, pulse=pulse).start()
    os.utime(path, (1, 1))
    wait_for(lambda: path.stat().st_mtime > 1)
    assert probe(path) == (0, "")
    pulse.expect("tick", -1.0)
    wait_for(path.read_text)
    wait_for(lambda: path.stat().st_mtime == 0)  # at once: it need not age
    threading.Event().wait(0.05)  # several rounds, none of which may touch it
    assert probe(path) == (1, "tick is not heard of\n")
    pulse.excuse("tick")
    wait_for(lambda: probe(path) == (0, ""))
    pulse.expect("tick", 60.0)


def test_a_file_that_cannot_be_written_is_said_at_the_start(tmp_path: Path) -> None:
    with pytest.raises(InvalidValue, match=r"PUNCTUAL_ALIVE_FILE: .* cannot be written"):
        PulseFile(tmp_path).start()
