from __future__ import annotations

import signal
import subprocess
import sys
import threading

import pytest

from scheduler_project.kernel.errors import RetryableError
from scheduler_project.kernel.loop import BackgroundService, run_until


@pytest.mark.parametrize(
    ("error", "line"), [(RetryableError("away"), "service_retry"), (ValueError("ours"), "service_failed")]
)
def test_a_service_goes_on_whatever_it_raises(
    error: Exception, line: str, caplog: pytest.LogCaptureFixture
) -> None:
    stop, rounds = threading.Event(), 0

    def run_once() -> float:
        nonlocal rounds
        rounds += 1
        if rounds < 3:
            raise error
        stop.set()
        return 0.0

    run_until(stop, run_once, name="a service")
    assert rounds == 3
    assert [record.getMessage() for record in caplog.records] == [line] * 2


def test_a_background_service_ends_when_it_is_asked_to() -> None:
    ran = threading.Event()

    def run_once() -> float:
        ran.set()
        return 60.0

    service = BackgroundService("waits long", run_once)
    service.start()
    assert ran.wait(5.0)
    assert service.stop(timeout=5.0)


def test_a_second_signal_ends_a_process_that_waits_for_something_else() -> None:
    program = (
        "import threading, time\n"
        "from scheduler_project.kernel.loop import stop_on_signals\n"
        "stop = threading.Event()\n"
        "stop_on_signals(stop)\n"
        "print('ready', flush=True)\n"
        "while not stop.is_set():\n"
        "    time.sleep(0.01)\n"
        "print('told', flush=True)\n"
        "while True:\n"
        "    try:\n"
        "        time.sleep(60)\n"
        "    except SystemExit:\n"
        "        pass\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for said in ("ready", "told"):
            assert process.stdout.readline() == f"{said}\n"
            assert process.poll() is None
            process.terminate()
        assert process.wait(10) == -signal.SIGTERM
