"""Workers of one host that were given no name."""

from __future__ import annotations

from pathlib import Path

from tests.system import running_system


def test_each_has_a_name_of_its_own_and_none_locks_the_other_out(tmp_path: Path) -> None:
    with running_system(tmp_path) as system:
        workers = system.start_all("maintenance maintenance")
        system.wait_until_ready()
        assert [worker.alive for worker in workers] == [True, True]
        assert [f"worker-{worker.pid}@" in worker.text() for worker in workers] == [True, True]
        assert [worker.stop() for worker in workers] == [0, 0]
