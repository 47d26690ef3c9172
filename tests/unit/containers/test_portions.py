"""Ranges and last lines of texts that come in pieces, and outputs by their positions."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from containers.logs import LogLimit, LogStore
from containers.logs.portions import ByteRange, cut, last_lines, read_range
from containers.logs.tracks import FileTrack, OutputTrack

RUN = UUID("019b5000-0000-7000-8000-000000000001")
PIECES = st.lists(st.text("ab\n").map(str.encode), max_size=8)


@pytest.mark.parametrize(
    ("header", "total", "expected"),
    [
        ("bytes=0-9", 100, (0, 10)),
        ("bytes=90-200", 100, (90, 100)),
        ("bytes=90-", 100, (90, 100)),
        ("bytes=-7", 100, (93, 100)),
        ("bytes=-700", 100, (0, 100)),
        ("bytes=100-", 100, None),
        ("bytes=-0", 100, None),
        ("bytes=0-", 0, None),
    ],
)
def test_a_range_of_bytes(header: str, total: int, expected: tuple[int, int] | None) -> None:
    found = read_range(header)
    assert found is not None
    assert found.within(total) == expected


@pytest.mark.parametrize(
    "header", ["", "bytes=", "bytes=-", "lines=0-1", "bytes=0-1,5-6", "bytes=9-1", "bytes=²-"]
)
def test_what_is_no_single_range_is_ignored(header: str) -> None:
    assert read_range(header) is None


@given(PIECES, st.integers(0, 12))
def test_the_last_lines_are_those_of_the_whole_text(pieces: list[bytes], count: int) -> None:
    lines = b"".join(pieces).splitlines(keepends=True)
    assert b"".join(last_lines(pieces, count)) == b"".join(lines[len(lines) - min(count, len(lines)) :])


@given(PIECES, st.integers(0, 30), st.integers(0, 30))
def test_a_part_is_that_of_the_whole_text(pieces: list[bytes], begin: int, size: int) -> None:
    assert b"".join(cut(pieces, begin, begin + size)) == b"".join(pieces)[begin : begin + size]
    assert ByteRange(begin, begin + size).within(len(b"".join(pieces))) != (0, 0)


def test_an_output_is_read_by_position_from_live_files_and_as_it_is_kept(tmp_path: Path) -> None:
    store = LogStore(tmp_path, LogLimit(head=10, tail=20))
    writer = store.writer(RUN, 1)
    writer.note("pulling busybox")
    output = b"".join(b"%04d\n" % number for number in range(30))  # 150 bytes, of which two segments are kept
    for begin in range(0, len(output), 7):
        writer.write(output[begin : begin + 7])
    writer.close()
    notes = writer.files.notes.read_bytes()

    live = FileTrack(writer.files)
    assert live.notes() == notes
    assert _shown(live.after(0)) == [(0, output[:10]), (110, output[110:])]
    assert _shown(live.after(140)) == [(140, output[140:])]
    assert _shown(live.after(150)) == []
    kept = store.output(RUN, 1)
    assert kept.size == len(b"".join(kept.pieces))
    for position in (0, 5, 10, 60, 135, 150):
        track = OutputTrack(store.output(RUN, 1))
        found = _shown(track.after(position))
        assert track.notes() == notes
        begins = [begin for begin, _ in found]
        assert begins == sorted(begins)
        assert all(output[begin : begin + len(data)] == data for begin, data in found)
        assert sum(len(data) for _, data in found) == len(output[:10][position:]) + min(20, 150 - position)


def test_a_silent_attempt_has_its_notes_alone(tmp_path: Path) -> None:
    store = LogStore(tmp_path)
    writer = store.writer(RUN, 1)
    writer.note("pulling busybox")
    writer.finish()
    track = OutputTrack(store.output(RUN, 1))
    assert _shown(track.after(0)) == []
    assert track.notes() == writer.files.notes.read_bytes()


def _shown(found: Iterator[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    return list(found)
