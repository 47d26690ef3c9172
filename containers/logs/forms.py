r"""The forms in which programs write a value, and the views of an output in which they are looked for; pure.

A value is looked for in three views of the output:

* RAW: as it is. Here lie the value and its usual encodings.
* UNESCAPED: each escape of one character undone (``%2F``, ``\u002f``, ``\x2f``, ``&#x2f;``), backslashes left
  out, so that it does not matter which characters an encoder escapes, and how.
* SQUEEZED: the same without white space and in one alphabet of base64, so that lines may be broken anywhere.

Each view is local: which bytes of it an escape gives depends on that escape alone, since none contains the
first byte of another. So it does not matter where a reader begins, except within the first escape.
"""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_right
from collections.abc import Iterable
from functools import lru_cache
from html import unescape
from urllib.parse import quote, quote_plus

LEAST_BYTES = 6
LEAST_BASE64 = 8
LONGEST_ESCAPE = 10
_LINES = (64, 76)  # where programs break base64
_ESCAPE = (
    rb"%[0-9A-Fa-f]{2}|\\[nrt]|\\u[0-9A-Fa-f]{4}|\\x[0-9A-Fa-f]{2}"
    rb"|&(?:amp|lt|gt|quot|apos|#[0-9]{1,7}|#[xX][0-9A-Fa-f]{1,6});"
)
_ESCAPES = re.compile(_ESCAPE)
_TORN = re.compile(
    rb"(?:%[0-9A-Fa-f]?|\\|\\u[0-9A-Fa-f]{0,3}|\\x[0-9A-Fa-f]?|&[a-z]{0,4}|&#[0-9]{0,7}|&#[xX][0-9A-Fa-f]{0,6})\Z"
)
_SPACES = {b"\\n": b"\n", b"\\r": b"\r", b"\\t": b"\t"}


def whole_escapes(text: bytes) -> int:
    """How much of ``text`` there is before an escape that its end may have cut off."""
    torn = _TORN.search(text, max(0, len(text) - LONGEST_ESCAPE))
    return torn.start() if torn else len(text)


def undone(text: bytes) -> bytes:
    """``text`` with each escape as the character that it stands for; backslashes that escape nothing stay."""
    if b"\\" in text or b"%" in text or b"&" in text:
        return _ESCAPES.sub(lambda found: _character(found[0]), text)
    return text


@lru_cache(maxsize=4096)
def _character(escape: bytes) -> bytes:
    if escape in _SPACES:
        return _SPACES[escape]
    if escape[:1] == b"&":
        return unescape(escape.decode()).encode("utf-8", "surrogatepass")
    if escape[:2] == b"\\u":
        return chr(int(escape[2:], 16)).encode("utf-8", "surrogatepass")
    return bytes([int(escape[-2:], 16)])


class View:
    """An output with escapes undone, ``deleted`` left out, and each byte of ``read`` as that of ``as_``."""

    def __init__(self, deleted: bytes, read: bytes = b"", as_: bytes = b"") -> None:
        self._table = bytes.maketrans(read, as_)
        self._deleted = deleted
        self._tokens = re.compile(_ESCAPE + b"|[" + re.escape(deleted) + b"]")

    def of(self, text: bytes) -> bytes:
        return self.of_undone(undone(text))

    def of_undone(self, text: bytes) -> bytes:
        return text.translate(self._table, self._deleted)

    def places(self, text: bytes) -> Places:
        """Where in ``text`` the bytes of its view come from."""
        places = Places()
        done = 0
        for token in self._tokens.finditer(text):
            places.add(token.start() - done, token.start() - done)
            size = len(self.of(token[0]))
            places.add(size, len(token[0]))
            done = token.end()
        places.add(len(text) - done, len(text) - done)
        return places


class Places:
    """Runs of bytes of a view and of the text behind it: of one length, or a token and what it gives."""

    def __init__(self) -> None:
        self._views, self._texts = [0], [0]  # where each run begins; the last is where the next will
        self._sizes: list[tuple[int, int]] = []

    def add(self, view: int, text: int) -> None:
        if view:
            self._sizes.append((view, text))
            self._views.append(self._views[-1] + view)
            self._texts.append(self._texts[-1] + text)
        else:
            self._texts[-1] += text

    def begin(self, place: int) -> int:
        """Where the text begins that gives the byte at ``place`` of the view."""
        run = bisect_right(self._views, place) - 1
        if run == len(self._sizes):
            return self._texts[run]
        view, text = self._sizes[run]
        return self._texts[run] + (place - self._views[run] if view == text else 0)

    def end(self, place: int) -> int:
        """Where the text ends that gives the byte before ``place``."""
        run = bisect_right(self._views, place - 1) - 1
        view, text = self._sizes[run]
        return self._texts[run] + (place - self._views[run] if view == text else text)


UNESCAPED = View(b"\\")
SQUEEZED = View(b"\\ \t\r\n", b"-_", b"+/")


class Forms:
    """Every byte string that is to be masked for some values, by the view in which it is looked for."""

    def __init__(self, values: Iterable[str]) -> None:
        self.raw: set[bytes] = set()
        self.unescaped: set[bytes] = set()
        self.squeezed: set[bytes] = set()
        for value in values:
            for text in {value, *value.splitlines()}:
                self._add(text.strip("\r\n"))

    @property
    def longest(self) -> int:
        return max(map(len, self.raw | self.unescaped | self.squeezed), default=0)

    def _add(self, text: str) -> None:
        raw = text.encode("utf-8", "surrogateescape")
        if len(raw) < LEAST_BYTES:
            return
        written = {raw, *_written(text, raw)}
        self.raw |= written
        self.unescaped |= {form for form in map(UNESCAPED.of, written) if len(form) >= LEAST_BYTES}
        self.squeezed |= _base64_forms(raw)


def _written(text: str, raw: bytes) -> set[bytes]:
    escaped = {json.dumps(text)[1:-1], json.dumps(text, ensure_ascii=False)[1:-1]}
    percent = {quote(raw, safe=""), quote(raw), quote_plus(raw)}
    return {form.encode("utf-8", "surrogateescape") for form in escaped | percent}


def _base64_forms(raw: bytes) -> set[bytes]:
    """The characters that are certain wherever ``raw`` begins: those made of its bits alone.

    What begins by itself may also be broken into lines that stand apart, as behind a prefix.
    """
    found: set[bytes] = set()
    for before in range(3):
        text = base64.b64encode(bytes(before) + raw)
        found.add(text[-(-8 * before // 6) : 8 * (before + len(raw)) // 6])
    alone = base64.b64encode(raw).rstrip(b"=")
    for width in _LINES:
        found |= {alone[begin : begin + width] for begin in range(0, len(alone), width)}
    return {form for form in found if len(form) >= LEAST_BASE64}
