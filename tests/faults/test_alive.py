"""What a probe hears of processes that are stopped, and of those whose parts are away."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from tests.e2e.test_runs import body
from tests.integration.proxy import TcpProxy, proxy_before
from tests.system import NOWHERE, ROOT, Process, System, running_system

PROBE = ROOT / "deploy" / "punctual-alive"
KINDS = ("beat", "worker", "recorder", "auditor", "maintenance")
HANGS = signal.SIGURG  # of which Celery thinks nothing
HANG_ON_SIGNAL = f"""
import signal, threading
signal.signal({int(HANGS)}, lambda *_: threading.Event().wait(40))
"""  # sitecustomize.py: the main thread, which is each process' most important loop, waits for nothing
PARTS = {"DATABASE_URL", "REDIS_URL", "BROKER_URL"}


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with running_system(tmp_path_factory.mktemp("system")) as found:
        yield found


@pytest.fixture(scope="module")
def proxies(system: System) -> Iterator[dict[str, TcpProxy]]:
    """Before every part, and five processes that go through them."""
    with ExitStack() as stack:
        made = {name: stack.enter_context(proxy_before(system.env[name])) for name in sorted(PARTS)}
        through = {name: url for name, (_, url) in made.items()}
        for kind in KINDS:
            own = {**through, "DATABASE_URL": NOWHERE} if kind == "worker" else through
            system.start(kind, PUNCTUAL_ALIVE_FILE=str(system.home / kind), **own)
        system.wait_until_ready()
        yield {name: proxy for name, (proxy, _) in made.items()}


def file_of(process: Process) -> Path:
    return process.log.parent / process.kind


def probe(process: Process, seconds: float = 10) -> tuple[int, str]:
    own = {**os.environ, "PUNCTUAL_ALIVE_FILE": str(file_of(process))}
    done = subprocess.run(
        [PROBE, str(seconds)], env=own, capture_output=True, text=True, timeout=10, check=False
    )
    return done.returncode, done.stdout


def test_what_is_stopped_is_dead_until_it_goes_on(system: System, proxies: dict[str, TcpProxy]) -> None:
    assert [probe(process) for process in system.processes] == [(0, "")] * len(KINDS)
    for process in system.processes:
        process.signal(signal.SIGSTOP)
    system.wait_for(
        lambda: [probe(process, 2)[0] for process in system.processes] == [1] * len(KINDS), "all are dead"
    )
    for process in system.processes:
        process.signal(signal.SIGCONT)
    system.wait_for(
        lambda: [probe(process, 5)[0] for process in system.processes] == [0] * len(KINDS), "all live again"
    )


def test_what_waits_for_its_parts_lives_and_goes_on(system: System, proxies: dict[str, TcpProxy]) -> None:
    for proxy in proxies.values():
        proxy.go_away()
    until = {process.name: file_of(process).stat().st_mtime + 4 for process in system.processes}
    system.wait_for(
        lambda: all(file_of(each).stat().st_mtime > until[each.name] for each in system.processes),
        "all live while all their parts are away",
    )
    assert all("loops_late" not in process.text() for process in system.processes)
    for proxy in proxies.values():
        proxy.come_back()
    (job,) = system.create_jobs(body("after the outage", "true", "now"))
    (run,) = system.wait_all_terminal([job], 1)
    assert run["state"] == "Completed Normally"


def test_a_loop_that_hangs_is_found_in_seconds_and_lives_when_it_goes_on(tmp_path: Path) -> None:
    """The process lives, and so do its other threads: only its main loop does nothing."""
    (tmp_path / "hang").mkdir()
    (tmp_path / "hang" / "sitecustomize.py").write_text(HANG_ON_SIGNAL)
    with running_system(tmp_path) as own:
        for kind in KINDS:
            own.start(
                kind,
                PUNCTUAL_ALIVE_FILE=str(own.home / kind),
                PYTHONPATH=os.pathsep.join(filter(None, [str(tmp_path / "hang"), own.env.get("PYTHONPATH")])),
            )
        own.wait_until_ready()
        own.wait_for(lambda: [probe(process)[0] for process in own.processes] == [0] * len(KINDS), "all live")
        assert all("loops_late" not in process.text() for process in own.processes)
        for process in own.processes:
            process.signal(HANGS)
        # With an hour for the file's age: it is the loop that is found, well before 30 or 300 s.
        own.wait_for(
            lambda: all(probe(process, 3600)[0] for process in own.processes), "all are dead", timeout_s=28.0
        )
        assert all("is not heard of" in probe(process)[1] for process in own.processes)
        own.wait_for(lambda: not any(probe(process)[0] for process in own.processes), "all live again")
