"""Requests to stop."""

from __future__ import annotations

import os
import subprocess
import sys

from scheduler_project.standalone.interrupts import Interrupts


def test_a_request_shortly_after_the_first_is_the_same_one():
    now = [10.0]
    interrupts = Interrupts(clock=lambda: now[0])
    assert not interrupts.stop
    interrupts.request()
    now[0] += 0.4
    interrupts.request()
    assert (interrupts.stop, interrupts.at_once) == (True, False)


def test_a_later_request_means_at_once():
    now = [10.0]
    interrupts = Interrupts(clock=lambda: now[0])
    interrupts.request()
    now[0] += 0.6
    interrupts.request()
    assert interrupts.at_once


def test_a_signal_wakes_a_sleeper_and_is_a_request():
    script = (
        "import os, signal, threading, time\n"
        "from scheduler_project.standalone.interrupts import Interrupts\n"
        "i = Interrupts(); i.listen()\n"
        "threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()\n"
        "begun = time.monotonic(); i.sleep(20)\n"
        "print(i.stop, time.monotonic() - begun < 10)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        timeout=30,
        env=dict(os.environ),
        check=True,
    )
    assert done.stdout.split() == ["True", "True"]
