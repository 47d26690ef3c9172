"""Connections between every process and every server: cut, and swallowed without a word.

Each process has a way of its own to each server, through a proxy. A way is cut (both ends hear of it) or its
packets are dropped (nobody hears of it, tests/packets.py). Each beat is on a host of its own, as far as the
network goes, whose wires can be pulled (tests/namespaces.py).
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field

import pytest

from tests.faults.streams import SECOND, begin_stream, lateness
from tests.integration.proxy import TcpProxy, proxy_before
from tests.namespaces import Namespace, namespace
from tests.packets import swallowed
from tests.system import NOWHERE, System, running_system

PARTS = ("DATABASE_URL", "REDIS_URL", "BROKER_URL")
pytestmark = pytest.mark.timeout(300)
TIMES = {"PUNCTUAL_RUN_LEASE": "3s", "PUNCTUAL_ENQUEUE_TIMEOUT": "15s", "PUNCTUAL_WINDOW": "10s"}
SILENT_S = 8.0


@dataclass
class Wired:
    """A system, and by process and part the proxy that the one reaches the other through."""

    system: System
    ways: dict[tuple[str, str], TcpProxy] = field(default_factory=dict)
    beats: list[Namespace] = field(default_factory=list)

    @contextmanager
    def silent(self, part: str) -> Iterator[None]:
        """Nobody hears of that server, and it of nobody."""
        alone = {process.name for process in self.system.processes if process.kind != "beat"}
        ports = [way.port for (name, to), way in self.ways.items() if to == part and name in alone]
        with ExitStack() as stack:
            for beat in self.beats:
                stack.enter_context(beat.without(part))
            stack.enter_context(swallowed(*ports))
            yield


@pytest.fixture(scope="module")
def wired(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Wired]:
    with ExitStack() as stack:
        system = stack.enter_context(running_system(tmp_path_factory.mktemp("system"), **TIMES))
        found = Wired(system)
        for kind in ["beat", "beat", "worker", "recorder", "auditor"]:
            at: dict[str, str] = {}
            prefix: Sequence[str] = ()
            if kind == "beat":
                own = stack.enter_context(namespace(PARTS))
                found.beats.append(own)
                at, prefix = {part: wire.address for part, wire in own.wires.items()}, own.prefix
            through, made = {}, {}
            for part in PARTS:
                proxy = proxy_before(system.env[part], at.get(part, "127.0.0.1"))
                made[part], through[part] = stack.enter_context(proxy)
            if kind == "worker":
                through["DATABASE_URL"] = NOWHERE
            process = system.start(kind, prefix=prefix, **through)
            found.ways |= {(process.name, part): way for part, way in made.items()}
        stack.callback(system.stop_all)  # before the proxies go
        system.wait_until_ready()
        yield found


def test_connections_that_are_cut_again_and_again_lose_and_repeat_nothing(wired: Wired) -> None:
    stream = begin_stream(wired.system, "cut", 40, 5 * SECOND)
    for count in (3, 12, 24):
        stream.wait_for_starts(count)
        for way in wired.ways.values():
            way.cut()
    stream.ended_once()
    assert all(process.alive for process in wired.system.processes)


@pytest.mark.parametrize("part", PARTS)
def test_a_server_that_falls_silent_for_everybody_loses_and_repeats_nothing(wired: Wired, part: str) -> None:
    stream = begin_stream(wired.system, f"silent {part}", 30, 6 * SECOND)
    stream.wait_for_starts(3)
    with wired.silent(part):
        time.sleep(SILENT_S)  # the fault itself
    stream.ended_once()
    assert all(process.alive for process in wired.system.processes)


def test_one_beat_without_redis_and_one_without_postgres_make_nothing_late(wired: Wired) -> None:
    first, second = wired.beats
    stream = begin_stream(wired.system, "two deaf beats", 30, 6 * SECOND)
    stream.wait_for_starts(3)
    with first.without("REDIS_URL"), second.without("DATABASE_URL"):
        stream.wait_for_starts(30)
    assert lateness(stream.ended_once()) < 4 * SECOND


def test_a_beat_without_postgres_leaves_its_shards_to_one_that_has_it(wired: Wired) -> None:
    """The runs are due beyond the window (10 s and 10 s of slack): their shards have to be loaded."""
    stream = begin_stream(wired.system, "one blind beat", 30, SECOND, after=22 * SECOND)
    with wired.beats[1].without("DATABASE_URL"):
        stream.wait_for_starts(30)
    assert lateness(stream.ended_once()) < 4 * SECOND
