"""The supervisor over small real processes."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

import pytest

from scheduler_project.kernel.clock import monotonic
from scheduler_project.standalone.children import Program, execute
from scheduler_project.standalone.interrupts import Interrupts
from scheduler_project.standalone.leftovers import birth
from scheduler_project.standalone.supervisor import (
    StartFailed,
    StopAtOnce,
    StopRequested,
    Supervisor,
    describe_end,
)

pytestmark = pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")


class World:
    """Notes what the supervisor says, and the process ids by name."""

    def __init__(self) -> None:
        self.lines: list[str] = []
        self.starts: list[tuple[str, int]] = []
        self.ends: list[str] = []

    def say(self, line: str) -> None:
        self.lines.append(line)

    def started(self, program: Program, pid: int) -> None:
        self.starts.append((program.name, pid))

    def ended(self, program: Program) -> None:
        self.ends.append(program.name)

    def turn(self) -> None:
        pass

    def last_words(self, program: Program) -> str:
        return program.log.read_text().strip().rpartition("\n")[2] if program.log.exists() else ""

    def pids(self, name: str) -> list[int]:
        return [pid for started, pid in self.starts if started == name]


@pytest.fixture
def world():
    return World()


@pytest.fixture
def interrupts():
    return Interrupts()


@pytest.fixture
def supervisor(world, interrupts):
    made = Supervisor(world, interrupts)
    yield made
    made.kill_all()


@pytest.fixture
def program(tmp_path):
    def make(name: str, script: str, **more) -> Program:
        values = {"env": {"PATH": os.defpath}, "log": tmp_path / f"{name}.log", **more}
        return Program(name=name, body=execute("/bin/sh", "-c", script), **values)

    return make


def wait_for(condition, supervisor: Supervisor, name: str) -> None:
    supervisor.wait_until(name, condition, 10.0)


def test_a_process_that_ends_unasked_is_started_again_and_a_line_says_so(supervisor, world, program):
    supervisor.start(program("steady", "sleep 60"))
    supervisor.start(program("broken", "echo no such file >&2; exit 3"))
    wait_for(lambda: len(world.pids("broken")) == 3, supervisor, "steady")

    assert "broken ended unasked (exit code 3); starting it again in 0.2 s: no such file" in world.lines[0]
    assert "again in 0.4 s" in world.lines[1]  # each time it waits longer
    assert len(world.pids("steady")) == 1


def test_a_killed_process_is_named_with_its_signal(supervisor, world, program):
    supervisor.start(program("other", "sleep 60"))
    supervisor.start(program("victim", "sleep 60"))
    os.kill(world.pids("victim")[0], signal.SIGKILL)
    wait_for(lambda: len(world.pids("victim")) == 2, supervisor, "other")
    assert world.lines[0].startswith("victim ended unasked (by SIGKILL); starting it again in 0.2 s")


def test_stopping_goes_group_by_group_and_starts_nobody_again(supervisor, world, program, tmp_path):
    order = tmp_path / "order"
    for name in ("web", "worker", "database"):
        script = (
            f"trap 'sleep 0.2; echo {name} >> {order}; exit 0' TERM; touch {tmp_path}/{name}; sleep 60 & wait"
        )
        supervisor.start(program(name, script))
        wait_for((tmp_path / name).exists, supervisor, name)

    assert [supervisor.stop([name]) for name in ("web", "worker", "database")] == [[], [], []]

    assert order.read_text().split() == ["web", "worker", "database"]
    assert len(world.starts) == 3
    assert not any(supervisor.knows(name) for name in ("web", "worker", "database"))


def test_a_process_that_ignores_the_request_is_killed_with_its_children(supervisor, world, program, tmp_path):
    script = f"trap '' TERM; sleep 60 & echo $! > {tmp_path}/child; while :; do sleep 1; done"
    supervisor.start(program("stubborn", script, stop_timeout_s=0.3))
    wait_for(
        lambda: (tmp_path / "child").exists() and (tmp_path / "child").read_text(), supervisor, "stubborn"
    )
    child = int((tmp_path / "child").read_text())

    assert supervisor.stop(["stubborn"]) == ["stubborn"]

    assert birth(world.pids("stubborn")[0]) is None
    assert _gone(child)


def test_a_process_waiting_to_be_started_again_can_be_stopped(supervisor, world, program):
    supervisor.start(program("broken", "exit 1"))
    supervisor.start(program("steady", "sleep 60"))
    wait_for(lambda: bool(world.ends), supervisor, "steady")
    assert supervisor.knows("broken")
    supervisor.stop(["broken"])
    assert not supervisor.knows("broken")


def test_a_program_that_is_to_end_well_and_does_not_is_a_failed_start(supervisor, program):
    supervisor.finish(program("good", "exit 0", restart=False), 10.0)
    with pytest.raises(StartFailed, match=r"migrate failed \(exit code 4\): no table"):
        supervisor.finish(program("migrate", "echo no table >&2; exit 4", restart=False), 10.0)


def test_a_program_that_takes_too_long_is_killed_and_a_failed_start(supervisor, world, program):
    with pytest.raises(StartFailed, match="slow is not done after 0 s"):
        supervisor.finish(program("slow", "sleep 60", restart=False), 0.2)
    assert birth(world.pids("slow")[0]) is None


def test_waiting_for_a_part_that_ends_is_a_failed_start(supervisor, program):
    supervisor.start(program("server", "echo bad option >&2; exit 2"))
    with pytest.raises(StartFailed, match=r"server ended \(exit code 2\): bad option"):
        supervisor.wait_until("server", lambda: False, 10.0)


def test_the_exit_code_of_a_program_that_is_not_restarted_is_handed_on(supervisor, program):
    supervisor.start(program("verdict", "exit 7", restart=False))
    assert supervisor.exit_code("verdict") == 7


def test_a_request_to_stop_ends_the_watch_and_a_second_one_the_stopping(
    supervisor, world, interrupts, program, monkeypatch
):
    supervisor.start(program("stubborn", "trap '' TERM; while :; do sleep 1; done"))
    interrupts.request()
    with pytest.raises(StopRequested):
        supervisor.exit_code("stubborn", 10.0)
    begun = monotonic()
    time.sleep(0.6)  # sooner, it would count as the same request
    interrupts.request()
    with pytest.raises(StopAtOnce):
        supervisor.stop(["stubborn"])
    supervisor.kill_all()
    assert monotonic() - begun < 5
    assert birth(world.pids("stubborn")[0]) is None


def test_a_child_has_its_own_session_its_own_environment_and_no_open_files(supervisor, program, tmp_path):
    lock = os.open(tmp_path / "lock", os.O_CREAT | os.O_RDWR)
    os.set_inheritable(lock, True)
    seen = tmp_path / "seen"
    script = f"env > {seen}; ls /proc/self/fd >> {seen}; ps -o sid= -p $$ >> {seen}; echo $$ >> {seen}"
    supervisor.finish(
        program("curious", script, env={"PATH": os.environ["PATH"], "ONLY": "this"}, restart=False), 10.0
    )
    os.close(lock)
    words = seen.read_text().split()
    assert "ONLY=this" in words
    assert not any(word.startswith("HOME=") for word in words)
    assert words[-1] == words[-2]
    assert str(lock) not in words[:-2]


def test_ends_are_described_as_people_say_them():
    assert describe_end(3) == "exit code 3"
    assert describe_end(-9) == "by SIGKILL"
    assert describe_end(-63) == "by signal 63"


def _gone(pid: int) -> bool:
    until = monotonic() + 5
    while birth(pid) is not None and monotonic() < until:
        time.sleep(0.02)
    return birth(pid) is None


def test_a_child_ends_when_its_supervisor_is_killed(tmp_path: Path):
    pid_file = tmp_path / "pid"
    body = execute("/bin/sh", "-c", f"echo $$ > {pid_file}.new; mv {pid_file}.new {pid_file}; exec sleep 60")
    supervisor = os.fork()
    if supervisor == 0:
        made = Supervisor(World(), Interrupts())
        made.start(Program(name="orphan", body=body, env={"PATH": os.defpath}, log=tmp_path / "log"))
        time.sleep(60)
        os._exit(0)
    until = monotonic() + 10
    while not pid_file.exists() and monotonic() < until:
        time.sleep(0.02)
    child = int(pid_file.read_text())
    assert birth(child) is not None
    os.kill(supervisor, signal.SIGKILL)
    os.waitpid(supervisor, 0)
    assert _gone(child)
