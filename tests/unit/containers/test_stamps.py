from __future__ import annotations

import tempfile
import uuid
from itertools import accumulate, pairwise
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from containers.logs import LogLimit, LogStore
from containers.logs.output import Output
from containers.logs.stamps import Stamp, Stream, packed, stamped, unpacked
from scheduler_project.kernel.clock import to_micros, utcnow

ID = uuid.UUID(int=1 << 80)
SECOND = 1_000_000
BEGIN = 1_700_000_000 * SECOND  # 2023-11-14T22:13:20Z
ROOMY = LogLimit(head=10_000, tail=10_000)


def lines_of(output: Output) -> list[bytes]:
    return b"".join(stamped(output.pieces, output.stamps())).splitlines(keepends=True)


def test_each_line_has_the_time_and_stream_of_its_first_byte(tmp_path):
    store = LogStore(tmp_path, ROOMY)
    writer = store.writer(ID, 1)
    writer.note("pulling")
    writer.write(b"one\ntw", [Stamp(0, BEGIN, Stream.STDOUT)])
    writer.write(b"o\n", [Stamp(0, BEGIN + SECOND, Stream.STDERR)])
    writer.write(
        b"three\nno end", [Stamp(0, BEGIN + 2 * SECOND, Stream.BOTH), Stamp(6, BEGIN + 1, Stream.STDERR)]
    )
    writer.close()
    note, *lines = lines_of(store.output(ID, 1))
    assert note.startswith(b"[punctual ")
    assert lines == [
        b"2023-11-14T22:13:20.000000Z stdout one\n",
        b"2023-11-14T22:13:20.000000Z stdout two\n",
        b"2023-11-14T22:13:22.000000Z - three\n",
        b"2023-11-14T22:13:20.000001Z stderr no end",
    ]


def test_what_has_no_stamp_says_so_and_what_is_given_none_came_now(tmp_path):
    store = LogStore(tmp_path, ROOMY)
    before = to_micros(utcnow())
    writer = store.writer(ID, 1)
    writer.write(b"now\n")
    writer.close()
    (stamp,) = store.output(ID, 1).stamps()
    assert before <= stamp.micros <= to_micros(utcnow())
    store.files(ID, 1).times(-1).unlink()
    assert lines_of(store.output(ID, 1)) == [b"- - now\n"]


def test_a_record_that_is_torn_costs_that_record_only(tmp_path):
    store = LogStore(tmp_path, ROOMY)
    first = store.writer(ID, 1)
    first.write(b"one\n", [Stamp(0, BEGIN, Stream.STDOUT)])
    first.close()
    with store.files(ID, 1).times(-1).open("ab") as file:
        file.write(packed([Stamp(4, BEGIN + SECOND, Stream.STDERR)])[:-1])
    second = store.writer(ID, 1)
    second.write(b"two\n", [Stamp(0, BEGIN + 2 * SECOND, Stream.STDERR)])
    second.close()
    assert store.output(ID, 1).stamps() == [
        Stamp(0, BEGIN, Stream.STDOUT),
        Stamp(4, BEGIN + 2 * SECOND, Stream.STDERR),
    ]


def test_of_two_times_of_a_byte_the_earlier_is_right():
    early, late = Stamp(5, BEGIN, Stream.BOTH), Stamp(5, BEGIN + 1, Stream.BOTH)
    assert unpacked(packed([late, early, late])) == [early]


def test_short_pieces_in_turn_take_no_more_room_for_times_than_for_themselves(tmp_path):
    store = LogStore(tmp_path, LogLimit(head=20_000, tail=20_000))
    writer = store.writer(ID, 1)
    for number in range(30_000):
        writer.write(b"x\n", [Stamp(0, BEGIN + number * SECOND, Stream(1 + number % 2))])
    writer.close()
    sizes = [path.stat().st_size for path in tmp_path.rglob("*.times")]
    assert len(sizes) == 3
    assert max(sizes) <= 20_000 + 5_000


PIECES = st.lists(
    st.tuples(st.text("ab\n", min_size=1, max_size=9), st.sampled_from([Stream.STDOUT, Stream.STDERR])),
    max_size=12,
)


@given(pieces=PIECES, cuts=st.lists(st.integers(0, 60), max_size=3), hidden=st.booleans())
def test_times_survive_limits_masks_and_a_second_writer(pieces, cuts, hidden):
    """What is written by several, one after the other, from a source that can be read again."""
    data = [text.encode() for text, _ in pieces]
    begins = [0, *accumulate(map(len, data))]
    output = b"".join(data)
    source = [Stamp(at, BEGIN + at * SECOND, stream) for at, (_, stream) in zip(begins, pieces, strict=False)]
    limit = LogLimit(head=11, tail=13)
    with tempfile.TemporaryDirectory() as folder:
        store = LogStore(Path(folder), limit)
        for cut in [*sorted(cuts), len(output)]:
            writer = store.writer(ID, 1, ["ababab"] if hidden else [])
            for (begin, end), stamp in zip(pairwise(begins), source, strict=True):
                fresh = output[max(begin, writer.position) : min(end, cut)]
                if fresh:
                    writer.write(fresh, [stamp._replace(position=0)])
        writer.finish()
        shown = store.output(ID, 1)
        text, stamps = b"".join(shown.pieces), list(shown.stamps())
    left_out = max(0, len(output) - limit.head - limit.tail)
    tail_shown = len(text) - (len(output) - limit.head - left_out)
    for place in range(len(text)):
        (stamp,) = [stamp for stamp in stamps if stamp.position <= place][-1:]
        if not left_out or place < limit.head:
            position = place
        elif place < tail_shown:
            assert stamp.stream is Stream.NOTE
            continue
        else:
            position = place - tail_shown + limit.head + left_out
        wanted = [each for each in source if each.position <= position][-1]
        assert (stamp.micros, stamp.stream) == (wanted.micros, wanted.stream)
