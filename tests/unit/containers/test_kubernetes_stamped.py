"""However a stream of a pod's log breaks, nothing is doubled and nothing is lost."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from containers.kubernetes.stamped import StampedOutput

BEGIN = datetime(2026, 12, 24, 12, 0, 0, tzinfo=UTC)
CONTENT = st.binary(max_size=12).map(lambda text: text.replace(b"\n", b""))
# Lines of one instant, of one second, and seconds apart; some stamped early, as where two streams meet.
PAUSES, EARLY = st.sampled_from([0.0, 0.0, 0.3, 1.0, 2.5]), st.sampled_from([0.0, 0.0, 0.4])
# A line in its parts, each with the pause before it.
PARTS = st.lists(st.tuples(PAUSES, CONTENT), min_size=1, max_size=3)
LINES = st.lists(st.tuples(EARLY, PARTS), min_size=1, max_size=12)
Line = list[tuple[datetime, bytes]]


def stamped(lines: list[Line], since: str | None, *, last_has_end: bool) -> bytes:
    """As a node gives it: each part from that second on, with a time where a line begins."""
    earliest = BEGIN if since is None else datetime.fromisoformat(since)
    text = b""
    for line in lines:
        ends = last_has_end or line is not lines[-1]
        for number, (time, content) in enumerate(line):
            if time >= earliest:
                text += b"" if number else time.isoformat().encode() + b" "
                text += content + (b"\n" if ends and number == len(line) - 1 else b"")
    return text


@given(LINES, st.booleans(), st.lists(st.tuples(st.floats(0, 1), st.integers(1, 40)), max_size=5), st.data())
def test_what_is_read_in_pieces_of_broken_streams_is_the_whole(lines, last_has_end, breaks, data) -> None:
    timed: list[Line] = []
    now = BEGIN + timedelta(seconds=1)
    for early, parts in lines:
        line: Line = []
        for pause, content in parts:
            now += timedelta(seconds=pause)
            line.append((now - timedelta(seconds=early), content))
        timed.append(line)
    contents = [b"".join(content for _, content in line) for line in timed]
    whole = b"\n".join(contents) + (b"\n" if last_has_end else b"")
    written = data.draw(st.integers(0, len(whole)))
    output = StampedOutput(skip=written)
    read = bytearray(whole[:written])
    for part, size in [*breaks, (1.0, 7)]:
        stream = stamped(timed, output.since(), last_has_end=last_has_end)
        end = round(len(stream) * part)
        for begin in range(0, end, size):
            read += output.take(stream[begin : min(begin + size, end)])
        if part == 1.0:
            read += output.end()
    assert bytes(read) == whole
    assert not output.foreign
    assert not output.rotated


def test_each_line_has_the_time_of_its_node() -> None:
    output = StampedOutput(skip=1)
    output.since()
    assert output.take(b"2026-12-24T12:00:00.5Z ab\n1970-01-01T01:00:01.0000029+01:00 c\n") == b"b\nc\n"
    assert [stamp[:2] for stamp in output.stamps] == [(0, 1_798_113_600_500_000), (2, 1_000_002)]
    assert output.take(b"") == b""
    assert output.stamps == []


def test_a_line_of_many_megabytes_comes_as_it_arrives() -> None:
    output = StampedOutput()
    output.since()
    taken = output.take(b"2026-12-24T12:00:00.5Z " + b"x" * 100_000)
    taken += output.take(b"y" * 100_000 + b"\n2026-12-24T12:00:01Z z\n")
    assert taken == b"x" * 100_000 + b"y" * 100_000 + b"\nz\n"


def test_what_a_node_says_in_place_of_a_log_is_not_output() -> None:
    output = StampedOutput()
    output.since()
    assert output.take(b"unable to retrieve container logs for containerd://abc\n") == b""
    assert output.end() == b""
    assert output.foreign


def test_a_stream_is_resumed_a_second_before_the_last_line() -> None:
    output = StampedOutput()
    assert output.since() is None
    output.take(b"2026-12-24T13:00:05.123456789+01:00 a\n")
    assert output.since() == "2026-12-24T12:00:04Z"


class TestPartsOfLines:
    """A node keeps a line in parts, each with its time; the time that is asked for picks parts."""

    def test_the_rest_of_a_line_before_the_one_that_was_read_last_is_not_read_again(self) -> None:
        output = StampedOutput()
        output.since()
        output.take(b"2026-12-24T12:00:00Z 10 % 20 %\n2026-12-24T12:00:09.5Z done\n2026-12-24T12:00:09.6Z ne")
        assert output.since() == "2026-12-24T12:00:08Z"
        taken = output.take(b" 20 %\n2026-12-24T12:00:09.5Z done\n2026-12-24T12:00:09.6Z next\n")
        assert (taken, output.foreign, output.rotated) == (b"next\n", False, False)

    def test_nor_where_a_file_of_the_node_begins_within_it(self) -> None:
        output = StampedOutput()
        output.since()
        output.take(b"2026-12-24T12:00:09Z " + b"x" * 100_000 + b"\n2026-12-24T12:00:09.5Z next\n")
        output.since()
        taken = output.take(b"2026-12-24T12:00:09.2Z " + b"x" * 70_000)
        taken += output.take(b"2026-12-24T12:00:09Z xx\n2026-12-24T12:00:09.5Z next\n")
        taken += output.take(b"2026-12-24T12:00:09.6Z end\n")
        assert (taken, output.foreign, output.rotated) == (b"end\n", False, False)

    def test_what_is_missing_between_two_streams_is_said(self) -> None:
        output = StampedOutput()
        output.since()
        output.take(b"2026-12-24T12:00:09Z one\n")
        output.since()
        assert output.take(b"2026-12-24T12:00:30Z thirty\n") == b"thirty\n"
        assert output.rotated

    def test_text_after_the_log_is_what_its_node_says(self) -> None:
        output = StampedOutput()
        output.since()
        assert output.take(b"2026-12-24T12:00:09Z one\nrpc error: code = NotFound\n") == b"one\n"
        assert output.foreign
