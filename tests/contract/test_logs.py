"""Output as it comes, through every runtime: nothing breaks, nothing is lost, no secret is told."""

from __future__ import annotations

import base64
import os
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta
from pathlib import Path
from urllib.parse import quote

import pytest

from containers.logs import LogLimit, LogStore
from containers.logs.stamps import stamped
from containers.outcome import Reason
from containers.secrets import Secret
from containers.supervise import Detached, Stop
from scheduler_project.kernel.clock import utcnow
from tests.contract.bench import Bench, Run, eventually

VALUE = "correct+horse/battery=staple"
ROOMY = LogLimit(head=32 * 1024**2, tail=32 * 1024**2)


def lines_with_times(run: Run) -> list[tuple[datetime, str, str]]:
    output = run.bench.logs.output(run.id, 1)
    lines = b"".join(stamped(output.pieces, output.stamps())).decode().splitlines()
    split = [line.split(" ", 2) for line in lines]
    return [(datetime.fromisoformat(at), stream, text) for at, stream, text in split]


def test_each_line_has_its_time_and_where_it_can_be_known_its_stream(bench: Bench) -> None:
    run = bench.script("echo one; sleep 0.6; echo two >&2; sleep 0.6; printf three")
    before = utcnow()
    run.to_end()
    (first, second, third) = lines_with_times(run)
    assert [line[2] for line in (first, second, third)] == ["one", "two", "three"]
    assert before - timedelta(seconds=0.1) < first[0] < second[0] < third[0] <= utcnow()
    assert timedelta(seconds=0.3) < second[0] - first[0] < timedelta(seconds=3)
    known = ["stdout", "stderr", "stdout"] if bench.kind == "docker" else ["-", "-", "-"]
    assert [line[1] for line in (first, second, third)] == known


def test_a_line_is_there_within_a_second(bench: Bench) -> None:
    run = bench.script("sleep 0.5; cat /proc/uptime; sleep 30")
    seen: list[float] = []

    def look() -> Stop | None:
        if run.log.endswith(b"\n"):
            now = float(Path("/proc/uptime").read_text().split()[0])
            seen.append(now - float(run.log.split()[0]))
            return Stop.CANCEL
        return None

    run.to_end(look)
    assert seen[0] < 1.0


def test_very_many_lines(bench: Bench) -> None:
    bench.logs = LogStore(bench.home / "roomy", ROOMY)
    # A million takes an engine a minute of both cores, and the stand-in longer: neither is what is tried.
    count = {"docker": 200_000, "kubernetes": 50_000}.get(bench.kind, 1_000_000)
    run = bench.script(f"yes | head -n {count}")
    assert run.to_end().message == "exit code 0"
    assert run.log == b"y\n" * count


def test_long_lines_progress_bars_and_no_end(bench: Bench) -> None:
    """10 MiB is a whole number of an engine's entries; of such a line the end could get lost."""
    bench.logs = LogStore(bench.home / "roomy", ROOMY)
    run = bench.script(
        f"head -c {10 * 1024**2} /dev/zero | tr '\\0' x; echo; echo next;"
        r"for i in 1 2 3; do printf '\r%d0 %%' $i; done; printf '\n\377\200\000'; printf 'no end'"
    )
    run.to_end()
    assert run.log == b"x" * 10 * 1024**2 + b"\nnext\n\r10 %\r20 %\r30 %\n\xff\x80\x00no end"


def with_secret(bench: Bench, script: str) -> Run:
    return bench.script(script, secrets=(Secret("TOKEN", "team/token", VALUE),))


def test_a_secret_is_masked_in_each_of_its_forms(bench: Bench) -> None:
    forms = [VALUE, quote(VALUE, safe=""), base64.b64encode(VALUE.encode()).decode()]
    run = with_secret(
        bench, f'echo "<$TOKEN>"; echo "<{forms[1]}>"; printf "<%s>" "{forms[2]}"; echo in clear'
    )
    assert run.to_end().reason is Reason.SUCCEEDED
    stars = [b"<" + b"*" * len(form) + b">" for form in forms[:2]]
    plain, encoded, both = run.log.splitlines()
    assert [plain, encoded] == stars
    assert both.strip(b"<*=>in clear") == b""
    assert VALUE.encode() not in run.log


def test_a_secret_that_comes_in_pieces_is_masked_by_whoever_reads_them(bench: Bench) -> None:
    """Half of it is there when its watcher lets go; another one finds the rest."""
    first, rest = VALUE[:9], VALUE[9:]
    run = with_secret(bench, f"echo begin; printf {first}; sleep 2; printf '{rest}\\nend\\n'; sleep 0.2")
    with pytest.raises(Detached):
        run.to_end(run.stop_once_it_says(b"begin", Stop.DETACH))
    assert run.log.strip(b"\n") == b"begin"
    assert run.to_end(attach_only=True).reason is Reason.SUCCEEDED
    assert run.log == b"begin\n" + b"*" * len(VALUE) + b"\nend\n"


@pytest.fixture
def small_disk(bench: Bench, tmp_path: Path) -> Iterator[Path]:
    """A disk of 256 KiB for the logs: a tmpfs where we may mount one."""
    disk = tmp_path / "disk"
    disk.mkdir()
    mounted = (
        os.geteuid() == 0
        and not subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)], check=False, capture_output=True
        ).returncode
    )
    yield disk
    if mounted:
        subprocess.run(["umount", "--lazy", str(disk)], check=True)


def on_a_small_disk(bench: Bench, disk: Path, run: Run) -> None:
    bench.logs = LogStore(disk / "logs", ROOMY)
    if not os.path.ismount(disk):
        file = bench.logs.files(run.id, 1).head
        file.parent.mkdir(parents=True)
        file.symlink_to("/dev/full")


def test_a_full_disk_harms_neither_the_run_nor_its_watcher(bench: Bench, small_disk: Path) -> None:
    run = bench.script("head -c 2000000 /dev/zero | tr '\\0' x; echo; exit 3")
    on_a_small_disk(bench, small_disk, run)
    outcome = run.to_end()
    assert (outcome.reason, outcome.exit_code) == (Reason.FAILED, 3)
    assert outcome.message.startswith("exit code 3; the log is incomplete: ")
    assert "No space left" in outcome.message
    assert set(run.log) <= {ord("x")}


def test_a_disk_that_has_room_again_costs_nothing(bench: Bench, small_disk: Path) -> None:
    filling = small_disk / "filling"
    run = bench.script("echo begin; sleep 2; echo end")
    on_a_small_disk(bench, small_disk, run)
    if os.path.ismount(small_disk):
        with pytest.raises(OSError, match="No space left"):
            filling.write_bytes(b"x" * 2**20)
    with ThreadPoolExecutor(1) as pool:
        future = pool.submit(run.to_end)
        eventually(lambda: bench.processes(run), "the run starts")
        filling.unlink(missing_ok=True)
        if not os.path.ismount(small_disk):
            bench.logs.files(run.id, 1).head.unlink()
        outcome = future.result(30)
    assert outcome.message == "exit code 0"
    assert run.log == b"begin\nend\n"
