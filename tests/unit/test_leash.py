"""What is on a leash ends with whoever holds it, and hears no Ctrl-C."""

from __future__ import annotations

import os
import subprocess
import sys
import time

from scheduler_project.kernel.clock import monotonic
from scheduler_project.places import leash

PATIENCE_S = 10.0
HOLD = f"""
import os, subprocess, sys
held = subprocess.Popen([sys.executable, "-S", {leash.__file__!r}, str(os.getpid()), "/bin/sleep", "60"])
print(held.pid, flush=True)
sys.stdin.read()
"""


def state_of(pid: int) -> str:
    """As ps has it; empty where it has ended."""
    done = subprocess.run(
        ["ps", "-o", "stat=,pgid=,args=", "-p", str(pid)], capture_output=True, text=True, check=False
    )
    return "" if done.stdout.startswith("Z") else done.stdout.strip()


def wait_for(pid: int, wanted: str) -> str:
    deadline = monotonic() + PATIENCE_S
    while wanted not in (found := state_of(pid)) or bool(wanted) != bool(found):
        assert monotonic() < deadline, found
        time.sleep(0.02)
    return found


def test_it_becomes_the_command_in_a_group_of_its_own_and_ends_with_its_holder() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout
        pid = int(holder.stdout.readline())
        assert wait_for(pid, "sleep 60").split()[1] == str(pid)
        holder.kill()
    wait_for(pid, "")


def test_who_has_no_holder_any_more_does_not_begin() -> None:
    gone = subprocess.run(["/bin/sh", "-c", "echo $$"], capture_output=True, text=True, check=True).stdout
    assert int(gone) != os.getpid()
    done = subprocess.run(
        [sys.executable, "-S", leash.__file__, gone.strip(), "/bin/echo", "begun"], check=False
    )
    assert done.returncode == 1
