"""PostgreSQL that answers, and slowly: each answer takes longer, to beats, recorder and auditor alike."""

from __future__ import annotations

import socket
import time
from pathlib import Path

from tests.faults.streams import SECOND, begin_stream, lateness
from tests.integration.proxy import TcpProxy, server_of
from tests.relay import relay
from tests.system import running_system

RUNS = 60
SLOW_S = 0.4


class SlowProxy(TcpProxy):
    """Holds every packet of the server up for ``delay_s``."""

    delay_s = 0.0

    def _join(self, client: socket.socket, server: socket.socket) -> None:
        relay(client, server, answered=self._hold_up)

    def _hold_up(self, data: bytes) -> bytes:
        time.sleep(self.delay_s)
        return data


def test_a_database_that_lags_makes_nothing_late_and_what_is_recorded_catches_up(tmp_path: Path) -> None:
    with running_system(tmp_path) as system:
        host, port = server_of(system.env["DATABASE_URL"])
        proxy = SlowProxy(host, port)
        slow = {"DATABASE_URL": proxy.before(system.env["DATABASE_URL"])}
        try:
            for kind in ("beat", "recorder", "auditor"):
                system.start(kind, PUNCTUAL_ALIVE_FILE=str(system.home / kind), **slow)
            system.start("worker")
            system.wait_until_ready()
            stream = begin_stream(system, "slow", RUNS, 8 * SECOND, after=4 * SECOND)
            stream.wait_for_starts(1)
            proxy.delay_s = SLOW_S
            behind = 0
            while len(stream.starts()) < RUNS:
                ended = sum(row["finished_at"] is not None for row in system.executions(*stream.jobs))
                behind = max(behind, len(stream.starts()) - ended)
                time.sleep(0.1)
            rows = stream.ended_once()
            assert lateness(rows) < 3 * SECOND
            assert behind > 1, "it was not slow"
            proxy.delay_s = 0.0
            again = begin_stream(system, "as before", 5, SECOND)
            assert lateness(again.ended_once()) < 3 * SECOND
            assert all(process.alive for process in system.processes)
            assert all("loops_late" not in process.text() for process in system.processes)
        finally:
            proxy.close()
