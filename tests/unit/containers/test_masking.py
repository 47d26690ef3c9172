from __future__ import annotations

import base64
import html
import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import given
from hypothesis import strategies as st

from containers.logs import masking
from containers.logs.forms import LEAST_BYTES, LONGEST_ESCAPE, SQUEEZED, UNESCAPED, Forms, View
from containers.logs.masking import Masker

SECRET = "pä$$/wörd+of?the=warehouse"
KEY = "-----BEGIN KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQE\nFAASCBKcwggSjAgEAAoIBAQ\n-----END KEY-----\n"


def masked(output: bytes, *values: str) -> bytes:
    masker = Masker(values)
    return masker.feed(output) + masker.finish()


ESCAPE = re.compile(
    rb"%[0-9a-fA-F]{2}|\\[nrt]|\\u[0-9a-fA-F]{4}|\\x[0-9a-fA-F]{2}|&(lt|gt|amp|quot|apos|#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6});"
)


def tokens(view: View, output: bytes) -> list[tuple[int, int, bytes]]:
    """Each character of the output as it was written: where, and what it is in the view."""
    found, place = [], 0
    while place < len(output):
        escape = ESCAPE.match(output, place)
        end = escape.end() if escape else place + 1
        found.append((place, end, view.of(output[place:end])))
        place = end
    return found


def occurrences(view: View, form: bytes, output: bytes) -> Iterator[range]:
    parts = tokens(view, output)
    seen = b"".join(text for _, _, text in parts)
    origin = [(begin, end) for begin, end, text in parts for _ in text]
    for match in range(len(seen)):
        if seen.startswith(form, match):
            yield range(origin[match][0], origin[match + len(form) - 1][1])


def expected(output: bytes, values: list[str]) -> bytes:
    """By the definition: a byte is masked if any occurrence of any form, within reach, covers it."""
    forms = Forms(values)
    reach = Masker(values).context - LONGEST_ESCAPE
    hidden = {
        place
        for form in forms.raw
        for begin in range(len(output))
        if output.startswith(form, begin)
        for place in range(begin, begin + len(form))
    }
    for view, several, spared in ((UNESCAPED, forms.unescaped, b""), (SQUEEZED, forms.squeezed, b" \r\n\t")):
        for form in several:
            for found in occurrences(view, form, output):
                if len(found) <= reach:
                    hidden |= {place for place in found if output[place] not in spared}
    return bytes(ord("*") if place in hidden else byte for place, byte in enumerate(output))


@pytest.mark.parametrize(
    "form",
    [
        SECRET,
        quote(SECRET),
        quote(SECRET, safe=""),
        quote_plus(SECRET),
        re.sub("%..", lambda escape: escape[0].lower(), quote(SECRET, safe="")),
        json.dumps(SECRET)[1:-1],
        re.sub(r"u00..", lambda escape: escape[0].upper().replace("U", "u"), json.dumps(SECRET)[1:-1]),
        json.dumps(json.dumps(SECRET))[3:-3],
        SECRET.replace("/", r"\/").replace("=", r"\u003d"),
        quote(SECRET, safe="!*'()$+/"),
        "".join(f"%{byte:02x}" for byte in SECRET.encode()),
        html.escape(SECRET.replace("/", "&#x2F;").replace("ö", "&#246;")).replace("&amp;#", "&#"),
        repr(SECRET.encode())[2:-1],
        shlex.quote(SECRET).strip("'").replace("$", r"\$"),
    ],
)
def test_the_forms_in_which_programs_write_a_value_are_masked(form: str) -> None:
    assert masked(f"<{form}>\n".encode(), SECRET) == b"<" + b"*" * len(form.encode()) + b">\n"


@pytest.mark.parametrize("encode", [base64.b64encode, base64.urlsafe_b64encode])
@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
@pytest.mark.parametrize("after", ["", "\n", "@host"])
def test_base64_of_a_value_among_others_tells_nothing_of_it(encode, before: str, after: str) -> None:
    seen = masked(b"Basic " + encode((before + SECRET + after).encode()), SECRET)
    clear = encode((before + SECRET + after).encode())
    assert clear[2 + len(before) * 2 : -8 - len(after) * 2] not in seen
    assert seen.count(b"*") >= len(SECRET.encode()) * 8 // 6 - 2


def test_a_value_that_a_tool_breaks_into_lines_is_masked_line_by_line() -> None:
    value = "".join(f"{number:04d}-" for number in range(60))
    seen = masked(
        subprocess.run(["base64"], input=value.encode(), capture_output=True, check=True).stdout, value
    )
    assert len(seen.strip(b"*=\n")) <= 4 and seen.count(b"\n") >= 4
    assert masked(KEY.encode(), KEY).strip(b"*\n") == b""
    assert b"MIIE" not in masked(b"  | " + KEY.splitlines()[1].encode() + b"\r\n", KEY)


@pytest.mark.parametrize("size", [60, 99, 100, 101, 150])
@pytest.mark.parametrize("before", ["", "u", "us", "user:"])
def test_base64_among_others_and_broken_into_lines_tells_nothing(size: int, before: str) -> None:
    value = "".join(chr(33 + number * 7 % 90) for number in range(size))
    clear = base64.b64encode(f"{before}{value}\n".encode()).decode()
    first, last = -(-len(before) * 8 // 6), (len(before) + size) * 8 // 6
    for end in ("\n", "\r\n", "\n      ", r"\n", r"\r\n", " ", "%0A", r"\\n"):
        for width in (4, 64, 76):
            written = end.join(clear[begin : begin + width] for begin in range(0, len(clear), width))
            seen = masked(written.encode(), value).decode().replace(end, "").replace("*", "")
            assert (clear[:first] + clear[last:]).endswith(seen)


def test_base64_in_one_line_may_be_escaped() -> None:
    value = "\u00ff\u00fe>>??~~\u00ff\u00ff"
    clear = base64.b64encode(value.encode()).decode()
    assert "+" in clear and "/" in clear
    for written in (quote(clear, safe=""), clear.replace("/", r"\/"), clear.replace("+", r"\u002B")):
        assert masked(written.encode(), value).strip(b"*=3D%w") == b""


def test_occurrences_that_overlap_are_masked_whole() -> None:
    assert masked(b"xabcabcabcabcx", "abcabc") == b"x************x"


def test_a_short_value_is_not_masked() -> None:
    assert len("short") < LEAST_BYTES
    assert masked(b"in short, a word", "short", "", "\n") == b"in short, a word"


VALUES = st.lists(st.text("ab+/\\&\n", min_size=LEAST_BYTES, max_size=9), min_size=1, max_size=3)
OUTPUT = st.lists(
    st.sampled_from([*"ab+/%2BFYWJ\\nu06& ", "\\u0061", "%62", "\\/", "&#x61;"]), max_size=40
).map("".join)


def planted(value: str, how: int) -> str:
    """The value as some program may write it."""
    wrapped = base64.b64encode(value.encode()).decode()
    return [
        value,
        json.dumps(value)[1:-1],
        "".join(f"%{ord(char):02x}" if number % 2 else char for number, char in enumerate(value)),
        wrapped[:5] + " \n" + wrapped[5:],
        wrapped[:3] + r"\n" + wrapped[3:].replace("+", "%2B"),
    ][how]


@given(
    values=VALUES,
    output=OUTPUT,
    cuts=st.lists(st.integers(0, 90), max_size=6),
    how=st.integers(0, 4),
    plant=st.integers(0, 90),
)
def test_what_is_masked_depends_on_the_output_alone(values, output, cuts, how, plant) -> None:
    text = (
        output[:plant] + planted(values[0], how) + output[plant:] + planted(values[-1], how)[:-1]
    ).encode()
    masker, seen = Masker(values), b""
    for begin, end in zip([0, *sorted(cuts)], [*sorted(cuts), len(text)], strict=True):
        seen += masker.feed(text[begin:end])
        assert text[: len(seen)] == seen or expected(text, values)[: len(seen)] == seen
    assert seen + masker.finish() == expected(text, values)


@given(
    values=VALUES, output=OUTPUT, how=st.integers(0, 4), plant=st.integers(0, 90), begin=st.integers(0, 400)
)
def test_who_begins_in_the_middle_masks_the_same(values, output, how, plant, begin) -> None:
    text = (output * 5 + output[:plant] + planted(values[0], how) + output[plant:]).encode()
    second = Masker(values)
    begin = min(begin, len(text))
    earlier = max(0, begin - second.context)
    seen = second.feed(text[earlier:]) + second.finish()
    assert seen[begin - earlier :] == expected(text, values)[begin:]


def test_no_more_is_held_back_than_may_begin_a_value() -> None:
    masker = Masker(["hunter2hunter2"])
    assert masker.feed(b"password? ") == b"password? "
    assert masker.feed(b"hunt") == b""
    assert masker.feed(b"ing\n") == b"hunting\n"
    assert masker.feed(b"hunter2hun") == b""
    assert masker.finish() == b"hunter2hun"


def test_a_long_value_costs_no_quadratic_time() -> None:
    value = "a" * 60_000 + "b"
    masker = Masker([value])
    for _ in range(20):
        masker.feed(b"a" * 60_000)
    assert masker.feed(b"b").endswith(b"*" * 60_001)


PARTS = st.lists(st.tuples(st.integers(1, 2), st.integers(0, 9)), min_size=1, max_size=12)


def shared_out(parts: list[tuple[int, int]], text: dict[int, bytes]) -> list[tuple[int, bytes]]:
    """Both streams' texts as they come in turns: each time so many bytes, in the end the rest."""
    left, found = dict(text), []
    for stream, size in [*parts, (1, 999), (2, 999)]:
        found.append((stream, left[stream][:size]))
        left[stream] = left[stream][size:]
    return [(stream, piece) for stream, piece in found if piece]


def fed(masker: Masker, pieces: list[tuple[int, bytes]], size: int) -> bytes:
    told = b"".join(
        masker.feed(piece[begin : begin + size], stream)
        for stream, piece in pieces
        for begin in range(0, len(piece), size)
    )
    return told + masker.finish()


@given(values=VALUES, outputs=st.tuples(OUTPUT, OUTPUT), parts=PARTS, how=st.integers(0, 4))
def test_streams_that_break_into_each_other_are_masked_each_by_itself(values, outputs, parts, how) -> None:
    text = {
        stream: (output + planted(values[0], how) + output[:3]).encode().replace(b"\n", b" ")
        for stream, output in enumerate(outputs, 1)
    }
    pieces = shared_out(parts, text)
    seen = fed(Masker(values), pieces, 999)
    assert seen == fed(Masker(values), pieces, 1)
    alone = {1: b"", 2: b""}
    for stream, piece in pieces:
        alone[stream] += seen[: len(piece)]
        seen = seen[len(piece) :]
    for stream, output in text.items():
        hidden = expected(output, values)
        assert all(
            alone[stream][place] == hidden[place] for place in range(len(output)) if hidden[place] == 42
        )


@given(values=VALUES, output=OUTPUT, parts=PARTS, how=st.integers(0, 4), begin=st.integers(0, 900))
def test_who_begins_in_the_middle_of_two_streams_masks_the_same(values, output, parts, how, begin) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(masking, "APART", 12)
        text = (output * 9 + planted(values[0], how) + output).encode()
        pieces = shared_out(parts * 9, {1: text, 2: text})
        second = Masker(values)
        earlier = max(0, begin - second.context)
        left, rest = earlier, []
        for stream, piece in pieces:
            rest += [(stream, piece[left:])] if piece[left:] else []
            left = max(0, left - len(piece))
        whole = fed(Masker(values), pieces, 999)
        assert fed(second, rest, 7)[begin - earlier :] == whole[begin:]


def test_what_another_stream_breaks_off_is_shown_at_once() -> None:
    masker = Masker(["hunter2hunter2"])
    assert masker.feed(b"ok, so h\n", 1) + masker.feed(b"warning\n", 2) == b"ok, so h\nwarning\n"
    assert masker.feed(b"hunter2", 1) + masker.feed(b"warning\n", 2) == b"*******warning\n"
    assert masker.feed(b"hunter2\n", 1) + masker.finish() == b"*******\n"
