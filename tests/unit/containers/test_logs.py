from __future__ import annotations

import re
import tempfile
from datetime import UTC, date, datetime
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from containers.logs import MOST_NOTES, LogLimit, LogStore, due_day
from scheduler_project.kernel.clock import to_millis
from scheduler_project.kernel.errors import InvalidValue, NotFound


def run_id(day: str, tail: int = 1) -> UUID:
    due = datetime.fromisoformat(day).replace(tzinfo=UTC)
    return UUID(int=to_millis(due) << 80 | 0x7 << 76 | 0x8 << 60 | tail)


ID = run_id("2026-12-24")
LIMIT = LogLimit(head=10, tail=7)


def read(store: LogStore, attempt: int | None = None, execution_id: UUID = ID) -> bytes:
    return b"".join(store.read(execution_id, attempt))


def kept(output: bytes, limit: LogLimit = LIMIT) -> bytes:
    """What must be readable of ``output``, from the promise and not from the implementation."""
    left_out = len(output) - limit.head - limit.tail
    if left_out <= 0:
        return output
    gap = f"\n[{left_out:,} bytes of output are left out here]\n".encode()
    return output[: limit.head] + gap + output[-limit.tail :]


@given(pieces=st.lists(st.binary(max_size=25), max_size=12))
def test_head_and_tail_are_kept_and_the_gap_is_stated(pieces):
    with tempfile.TemporaryDirectory() as folder:
        store = LogStore(Path(folder), LIMIT)
        writer = store.writer(ID, 1)
        for piece in pieces:
            writer.write(piece)
        writer.close()
        output = b"".join(pieces)
        assert writer.position == len(output)
        assert read(store) == kept(output)


@given(output=st.binary(max_size=80), cuts=st.lists(st.integers(0, 80), max_size=5))
def test_a_new_writer_goes_on_where_the_last_one_was(output, cuts):
    with tempfile.TemporaryDirectory() as folder:
        store = LogStore(Path(folder), LIMIT)
        for cut in [*sorted(cuts), len(output)]:
            writer = store.writer(ID, 1)
            writer.write(output[writer.position : cut])
            writer.close()
        assert read(store) == kept(output)


TURNS = st.lists(st.tuples(st.integers(0, 1), st.integers(1, 30)), max_size=12)


@given(output=st.binary(max_size=80), turns=TURNS)
def test_two_writers_at_once_write_the_same_bytes_to_the_same_places(output, turns):
    """A slow watcher and the one that has taken over: whatever their turns, nothing doubles."""
    with tempfile.TemporaryDirectory() as folder:
        store = LogStore(Path(folder), LIMIT)
        writers = [store.writer(ID, 1), store.writer(ID, 1)]
        for who, size in [*turns, (0, len(output)), (1, len(output))]:
            writer = writers[who]
            writer.write(output[writer.position : writer.position + size])
        for writer in writers:
            writer.close()
        assert read(store) == kept(output)


def test_a_long_output_takes_no_more_than_head_and_two_tails(tmp_path):
    store = LogStore(tmp_path, LogLimit(head=1000, tail=500))
    writer = store.writer(ID, 1)
    for _ in range(100):
        writer.write(b"x" * 333)
    writer.close()
    assert sum(path.stat().st_size for path in tmp_path.rglob("*") if path.is_file()) <= 2000


def test_attempts_are_apart_and_the_newest_is_read(tmp_path):
    store = LogStore(tmp_path)
    for attempt in (1, 2, 11):
        writer = store.writer(ID, attempt)
        writer.write(f"attempt {attempt}".encode())
        writer.close()
    assert store.attempts(ID) == [1, 2, 11]
    assert read(store) == b"attempt 11"
    assert read(store, 2) == b"attempt 2"


def test_a_log_is_readable_while_it_is_written(tmp_path):
    store = LogStore(tmp_path)
    writer = store.writer(ID, 1)
    assert read(store) == b""
    writer.write(b"now")
    assert read(store) == b"now"
    writer.close()


def test_a_log_that_is_not_there_is_not_found_at_once(tmp_path):
    with pytest.raises(NotFound, match="attempt 1"):
        LogStore(tmp_path).read(ID, 1)
    with pytest.raises(NotFound):
        LogStore(tmp_path).read(ID)


def test_a_day_of_due_times_is_one_folder(tmp_path):
    store = LogStore(tmp_path)
    for day in ("2026-12-23", "2026-12-24", "2026-12-25"):
        store.writer(run_id(day), 1).close()
    assert store.forget_before(date(2026, 12, 25)) == ["2026-12-23", "2026-12-24"]
    assert store.attempts(run_id("2026-12-24")) == []
    assert store.attempts(run_id("2026-12-25")) == [1]
    assert LogStore(tmp_path / "none").forget_before(date(2026, 12, 25)) == []


def test_one_execution_can_be_forgotten_twice(tmp_path):
    store = LogStore(tmp_path)
    store.writer(ID, 1).close()
    store.forget(ID)
    store.forget(ID)
    assert store.attempts(ID) == []


def test_an_id_beyond_the_calendar_is_undated():
    assert due_day(ID) == "2026-12-24"
    assert due_day(UUID(int=2**128 - 1)) == "undated"


def on_a_full_disk(store: LogStore) -> Path:
    """The file of a log that no byte can be written to."""
    file = store.files(ID, 1).head
    file.parent.mkdir(parents=True)
    file.symlink_to("/dev/full")
    return file


def test_a_full_disk_is_an_error_of_the_write_and_costs_no_byte_once_there_is_room(tmp_path):
    store = LogStore(tmp_path, LIMIT)
    full = on_a_full_disk(store)
    writer = store.writer(ID, 1, ["a secret"])
    for piece in (b"0123", b"0123a sec"):
        with pytest.raises(OSError, match="No space left"):
            writer.write(piece)
        assert writer.position == 0
    full.unlink()
    writer.write(b"0123a sec")
    writer.write(b"ret")
    writer.finish()
    assert read(store) == kept(b"0123********")


def test_a_limit_of_nothing_is_refused():
    with pytest.raises(InvalidValue, match="0 \\+ 5"):
        LogLimit(head=0, tail=5)


def test_only_its_owner_may_read_a_log(tmp_path):
    folder = tmp_path / "elsewhere" / "logs"
    writer = LogStore(folder, LIMIT).writer(ID, 1)
    writer.write(b"x" * 30)
    writer.close()
    modes = {path: path.stat().st_mode & 0o777 for path in (folder.parent, *folder.parent.rglob("*"))}
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items()), modes


def test_notes_come_before_the_output_and_count_for_nothing(tmp_path):
    store = LogStore(tmp_path, LIMIT)
    writer = store.writer(ID, 1)
    writer.note("pulling\nan image")
    writer.write(b"output")
    writer.close()
    assert store.writer(ID, 1).position == len(b"output")
    note, output = b"".join(store.read(ID, 1)).splitlines()
    assert re.fullmatch(rb"\[punctual \S+Z\] pulling an image", note)
    assert output == b"output"
    assert store.attempts(ID) == [1]


def test_notes_without_end_fill_no_disk(tmp_path):
    writer = LogStore(tmp_path, LIMIT).writer(ID, 1)
    for _ in range(5):
        writer.note("x" * MOST_NOTES)
    assert sum(path.stat().st_size for path in tmp_path.rglob("*.notes")) < 2 * MOST_NOTES
