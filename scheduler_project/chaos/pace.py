"""How many runs a second this machine can be asked for, by what it can do at this moment."""

from __future__ import annotations

import os
import subprocess

from scheduler_project.kernel.clock import monotonic

TRIES = 200
# A run costs as much processor as some twenty starts of a program: all of Punctual's processes, the servers
# and the proxies (docs/reliability.md). More than as much again is for the faults, after which processes
# start, and for catching up with what is late.
STARTS_A_RUN = 50.0


def possible_rate() -> float:
    """Runs a second: processes are started on every core for some tenths of a second, and counted."""
    cores = os.cpu_count() or 1
    begin = monotonic()
    loop = f"n=0; while [ $n -lt {TRIES} ]; do /bin/true; n=$((n+1)); done"
    started = [subprocess.Popen(["/bin/sh", "-c", loop]) for _ in range(cores)]
    for process in started:
        process.wait()
    return cores * TRIES / (monotonic() - begin) / STARTS_A_RUN
