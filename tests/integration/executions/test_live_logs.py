"""A live log on its way to a web process that shares no folder with the worker: through real Redis."""

from __future__ import annotations

import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from containers.logs import LogLimit, LogStore
from containers.logs.stamps import Stamp, Stream, stamped
from containers.process import ProcessOptions, ProcessRuntime
from containers.spec import ContainerSpec
from containers.supervise import run_to_end
from executions.live_logs import BLOCK, LATER, LiveLogs
from executions.log_archive import log_archive
from executions.log_places import live_logs, log_store
from executions.logs import attempts_with_log, read_log
from executions.models import Execution
from executions.states import State
from executions.store import Store
from executions.transitions import record
from executions.worker.log_shipping import LogShipper
from executions.worker.run_logs import RunLogs
from scheduler_project.kernel.clock import utcnow
from tests.integration.making import COMPLETED, STARTED, make_run, said

BEGIN = 1_700_000_000_000_000


@pytest.fixture
def store(settings: Any) -> Iterator[Store]:
    made = Store(settings.REDIS_URL, settings.PUNCTUAL_NAMESPACE)
    yield made
    made.close()


def keys_of(store: Store, attempt: tuple[uuid.UUID, int]) -> set[str]:
    pattern = f"{store.namespace}:*:log:{attempt[0]}:*"
    (found,) = store.batch(lambda pipe: pipe.keys(pattern))
    return {key.decode().rpartition(":")[2] for key in found}


def shown(live: LiveLogs, attempt: tuple[uuid.UUID, int]) -> bytes:
    return b"".join(live.output(attempt).pieces)


def test_what_is_kept_is_bounded_and_says_what_is_left_out(store: Store, tmp_path: Path) -> None:
    attempt, live = (uuid.uuid4(), 1), LiveLogs(store, 4 * BLOCK)
    writer = LogStore(tmp_path, LogLimit(head=3 * BLOCK + 5, tail=5 * BLOCK + 7)).writer(*attempt)
    writer.note("pulling")
    output = b"".join(b"%07d\n" % number for number in range(6 * BLOCK))  # 48 blocks
    shipper = LogShipper(live)
    with shipper.following(attempt, writer):
        (followed,) = shipper._followed.values()
        for begin in range(0, len(output), 100_003):
            writer.write(output[begin : begin + 100_003])
            followed.ship()
            seen = shown(live, attempt)
            now = output[: begin + 100_003]
            assert now.endswith(seen[-1000:])
            assert output[:BLOCK] in seen
    head, _, tail = shown(live, attempt).partition(b"\n[")
    note, _, begin_of_output = head.partition(b"\n")
    assert note.startswith(b"[punctual ")
    assert output.startswith(begin_of_output)
    left_out, _, rest = tail.partition(f" bytes of output {LATER}]\n".encode())
    assert output.endswith(rest)
    assert len(begin_of_output) + int(left_out.replace(b",", b"")) + len(rest) == len(output)
    assert len(keys_of(store, attempt)) <= 4 + 3
    live.forget(attempt, len(output))
    assert keys_of(store, attempt) == set()


def test_two_workers_that_ship_one_log_agree_and_its_times_come_along(store: Store, tmp_path: Path) -> None:
    attempt, live = (uuid.uuid4(), 1), LiveLogs(store, 4 * BLOCK)
    for place in ("one", "two"):
        writer = LogStore(tmp_path / place).writer(*attempt)
        with LogShipper(live).following(attempt, writer):
            writer.write(b"a\n", [Stamp(0, BEGIN, Stream.STDOUT)])
            writer.write(b"b\nc", [Stamp(0, BEGIN + 1_000_000, Stream.STDERR)])
    output = live.output(attempt)
    assert b"".join(stamped(output.pieces, output.stamps())) == (
        b"2023-11-14T22:13:20.000000Z stdout a\n"
        b"2023-11-14T22:13:21.000000Z stderr b\n"
        b"2023-11-14T22:13:21.000000Z stderr c"
    )


def test_redis_that_is_away_costs_nothing_but_the_view(tmp_path: Path) -> None:
    attempt, away = (uuid.uuid4(), 1), Store("redis://127.0.0.1:1/0", "none")
    logs = LogStore(tmp_path)
    shipper = LogShipper(LiveLogs(away, BLOCK)).start()
    with shipper.following(attempt, logs.writer(*attempt)):
        logs.writer(*attempt).write(b"said\n")
    shipper.forget(attempt, 5)
    shipper.close()
    assert b"".join(logs.read(*attempt)) == b"said\n"


@pytest.mark.django_db
def test_web_on_another_machine_sees_a_live_line_within_a_second_and_then_all_of_it(
    settings: Any, store: Store, tmp_path: Path
) -> None:
    run = make_run(due=utcnow())
    attempt = (run, 1)
    record([said(STARTED, run)], utcnow())
    settings.PUNCTUAL_LOG_DIR = tmp_path / "worker"
    logs = RunLogs(store)
    settings.PUNCTUAL_LOG_DIR = tmp_path / "web"
    runtime = ProcessRuntime(ProcessOptions(home=tmp_path))
    spec = ContainerSpec(name=f"punctual-{run.hex}-1", argv=("sh", "-c", "echo live; sleep 1.5; echo end"))
    delays: list[float] = []

    def look() -> None:
        """Called while the run is watched, as its worker does it."""
        execution = Execution.objects.get(id=run)
        assert execution.state == State.ACTIVE
        if not delays and b"live\n" in b"".join(read_log(execution, 1)):
            started = runtime.attach(spec.name)
            assert started is not None
            delays.append((utcnow() - started.started_at).total_seconds())

    log = logs.store.writer(*attempt)
    with logs.shipping(attempt, log):
        run_to_end(runtime, spec, log, look)
    assert delays[0] < 1.0
    execution = Execution.objects.get(id=run)
    assert b"".join(read_log(execution, 1)) == b"live\nend\n"
    assert attempts_with_log(execution) == [1]
    logs.keep(attempt)
    logs.close()
    runtime.forget(spec.name)
    assert b"".join(log_archive().output(*attempt).pieces) == b"live\nend\n"
    assert b"".join(read_log(execution, 1)) == b"live\nend\n"
    assert keys_of(store, attempt) == set()
    lines = b"".join(read_log(execution, 1, timestamps=True)).splitlines()
    assert [line.partition(b"Z ")[2] for line in lines] == [b"- live", b"- end"]
    found = live_logs(store)
    assert found is not None
    assert found.written(attempt) is None


@pytest.mark.django_db
def test_a_log_that_is_archived_while_it_is_looked_for_is_found(
    settings: Any, store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where an earlier worker left a beginning of it in web's folder."""
    run = make_run(due=utcnow())
    attempt = (run, 1)
    record([said(STARTED, run), said(COMPLETED, run, exit_code=0)], utcnow())
    settings.PUNCTUAL_LOG_DIR = tmp_path / "worker"
    logs = RunLogs(store)
    settings.PUNCTUAL_LOG_DIR = tmp_path / "web"
    log_store().writer(*attempt).close()
    log = logs.store.writer(*attempt)
    with logs.shipping(attempt, log):
        log.write(b"all of it\n")
        log.finish()
    written = LiveLogs.written

    def just_then(live: LiveLogs, asked: tuple[uuid.UUID, int]) -> int | None:
        logs.keep(attempt)
        logs.close()
        return written(live, asked)

    monkeypatch.setattr(LiveLogs, "written", just_then)
    assert b"".join(read_log(Execution.objects.get(id=run), 1)) == b"all of it\n"
    assert keys_of(store, attempt) == set()
