"""``manage.py chaos`` itself: nothing is lost in a short one, and nothing is left behind."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from scheduler_project.chaos.plan import EACH, KINDS
from scheduler_project.kernel.clock import monotonic
from scheduler_project.places.processes import ROOT
from scheduler_project.places.virtual_hosts import virtual_hosts_of
from tests import services
from tests.processes import PROC, text_of

PATIENCE_S = 150.0
SEEN = re.compile(r"over (\S+), in (\S+), with its logs in (\S+)")


def start(*words: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "manage.py", "chaos", *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def assert_nothing_is_left(said: str) -> None:
    (found,) = SEEN.findall(said)
    _, name, home = found
    assert name not in services.database_names()
    assert name not in virtual_hosts_of(services.broker_url()).names()
    with redis.Redis.from_url(services.redis_url()) as client:
        assert list(client.scan_iter(match=f"{name}*", count=1000)) == []
    assert not Path(home).exists()
    assert processes_of(name) == []


def processes_of(name: str) -> list[str]:
    """Those that carry the name of the places in their environment."""
    return [folder.name for folder in PROC.glob("[0-9]*") if name in text_of(folder / "environ")]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("broker", ["rabbitmq", "redis"])
def test_nothing_is_lost_in_a_short_chaos_and_nothing_left_behind(broker: str) -> None:
    chaos = start("--runs", "150", "--minutes", "0.25", "--seed", "6", "--broker", broker, "--json")
    told, said = chaos.communicate()
    assert chaos.returncode == 0, said + told
    answer = json.loads(told)
    assert (answer["seed"], answer["due"], answer["lost"]) == (6, 150, 0)
    assert (answer["started"], answer["finished"], answer["not_due"]) == (150, 150, 0)
    assert answer["started_twice"] <= 1
    assert answer["faults"], "it was no chaos"
    assert_nothing_is_left(said)


def started_all(chaos: subprocess.Popen[str]) -> str:
    """What it has said when its processes are being started."""
    assert chaos.stderr
    said = ""
    while not SEEN.search(said):
        line = chaos.stderr.readline()
        assert line, said
        said += line
    home = Path(SEEN.findall(said)[0][2])
    wait_until(lambda: len(list(home.glob("*.log"))) == len(KINDS) * EACH)
    return said


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = monotonic() + PATIENCE_S
    while not condition():
        assert monotonic() < deadline
        time.sleep(0.05)


def test_it_takes_everything_with_it_when_it_is_told_to_end() -> None:
    chaos = start("--runs", "50", "--minutes", "0.25")
    said = started_all(chaos)
    chaos.terminate()
    chaos.communicate(timeout=PATIENCE_S)
    assert chaos.returncode == 130
    assert_nothing_is_left(said)
