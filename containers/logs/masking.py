"""Hiding the values of secrets in an output; pure.

Whatever is masked keeps its length: a byte's place in the log is its place in the output, which is what
makes a log whole and single when a second worker attaches. Which bytes are masked depends on the output
alone, not on the pieces in which it arrived nor on where a reader began:

* a byte is masked if it belongs to any occurrence of any form of a value, also where occurrences overlap;
* an occurrence of more than ``reach`` bytes (of much white space or long escapes) is none;
* bytes that may turn out to begin an occurrence are held back until what follows tells, or the output ends;
* a reader that begins in the middle is first given ``context`` bytes from before, and drops what it had.

Of two streams in one output each is masked by itself, since either may break into a value on the other:

    stdout …pass │ stderr warning\n │ stdout word\n      the halves are looked for as "…password\n"

Nothing is held back while the other stream speaks, perhaps for hours. So what may be the beginning of a
value is masked where its stream is broken off: within a line all of it, at the end of one LEAST_BASE64 bytes
and more.
What lies more than APART bytes further back is not joined any more.

The forms of a value are those of ``forms.py``. A value, or a line, of fewer than LEAST_BYTES bytes is not
masked: it would blacken what is no secret, and tell by that what it is. Base64 of fewer than LEAST_BASE64
certain characters is left out for the same reason.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator

from containers.logs.forms import (
    LEAST_BASE64,
    LONGEST_ESCAPE,
    SQUEEZED,
    UNESCAPED,
    Forms,
    View,
    undone,
    whole_escapes,
)

MASK = b"*"
APART = 64 * 1024
_STRETCH = 3  # an occurrence may be so many times as long as what it is in its view, and
_SPARE = 64  # so many bytes longer
_ALL = MASK * 256
_ALL_BUT_SPACE = bytes(byte if byte in b"\r\n\t " else MASK[0] for byte in range(256))


class Masker:
    """Masks one output, which is given in order, in pieces of any size."""

    def __init__(self, values: Iterable[str] = ()) -> None:
        forms = _Forms(Forms(values))
        self.context = 2 * forms.context + APART if forms.context else 0
        self._forms = forms
        self._masks: dict[int, _StreamMasker] = {}
        self._current: _StreamMasker | None = None
        self._position = 0

    def feed(self, data: bytes, stream: int = 0) -> bytes:
        """What can be told now; the rest is held back. In all, as many bytes as were given.

        ``stream``: which of the output's it came on.
        """
        if not self.context:
            return data
        told = b""
        mask = self._masks.setdefault(stream, _StreamMasker(self._forms))
        if mask is not self._current:
            if self._current is not None:
                told = self._current.break_off(self._position)
            mask.go_on(self._position)
            self._current = mask
        self._position += len(data)
        return told + mask.feed(data)

    def finish(self) -> bytes:
        """The output has ended: what was held back."""
        return self._current.finish() if self._current is not None else b""


class _StreamMasker:
    """Masks one stream of an output. Positions are those of the output."""

    def __init__(self, forms: _Forms) -> None:
        self._forms = forms
        self.context = forms.context
        self._begin = 0  # of what came since this stream was broken off last
        self._parts: deque[tuple[int, int]] = deque()  # before that: where each ended, and its length
        self._joined = 0  # the sum of their lengths
        self._tail = b""  # the last bytes as they were, ``context`` of which have been told
        self._told = 0  # how many bytes of the tail have been told

    def feed(self, data: bytes) -> bytes:
        text = self._tail + data
        whole = whole_escapes(text)
        first = self._forms.first_that_may_begin(text, whole)
        return self._tell(text, whole, max(first, self._told))

    def finish(self) -> bytes:
        return self._tell(self._tail, len(self._tail), len(self._tail))

    def break_off(self, position: int) -> bytes:
        """Another stream follows: what was held back, masked where it may begin a value."""
        self._parts.append((position, position - self._begin))
        self._joined += position - self._begin
        text, held = self._tail, self._told
        recent = text[max(0, len(text) - self._forms.reach) :]
        whole = whole_escapes(recent)
        may_begin = len(recent) - self._forms.first_that_may_begin(recent, whole)
        told = bytearray(self._tell(text, whole_escapes(text), len(text)))
        if may_begin >= (LEAST_BASE64 if text.endswith(b"\n") else 1):
            begin = max(0, len(text) - may_begin - held)
            told[begin:] = told[begin:].translate(_ALL_BUT_SPACE)
        return bytes(told)

    def go_on(self, position: int) -> None:
        """It is this stream's turn again."""
        self._begin = position
        while self._parts and self._parts[0][0] < position - APART:
            self._joined -= self._parts.popleft()[1]
        if self._joined < len(self._tail):
            self._tail = self._tail[len(self._tail) - self._joined :]
            self._told = len(self._tail)

    def _tell(self, text: bytes, whole: int, until: int) -> bytes:
        told = self._forms.masked(text, whole)[self._told : until]
        keep = max(0, until - self.context)
        self._tail, self._told = text[keep:], until - keep
        return told


def masked(text: str, values: Iterable[str]) -> str:
    """``text`` as a whole, such as a message that may repeat what a program or an engine said."""
    masker = Masker(values)
    return (masker.feed(text.encode(errors="replace")) + masker.finish()).decode(errors="replace")


class _Forms:
    """Finds the occurrences of forms, whole ones and those that a text may be the beginning of.

    ``whole``: how much of a text there is before an escape that may have been cut off.
    """

    def __init__(self, forms: Forms) -> None:
        self._raw = sorted(forms.raw)
        self._unescaped = sorted(forms.unescaped)
        self._only_unescaped = sorted(forms.unescaped - forms.raw)
        self._squeezed = sorted(forms.squeezed)
        self.reach = _STRETCH * forms.longest + _SPARE
        self.context = self.reach + LONGEST_ESCAPE if forms.longest else 0

    def masked(self, text: bytes, whole: int) -> bytes:
        covered = bytearray(text)
        _cover(covered, _occurrences(self._raw, text))
        text = text[:whole]
        plain = undone(text)
        if plain is text and b"\\" not in text:
            _cover(covered, _occurrences(self._only_unescaped, text))
        else:
            _cover(covered, self._seen(UNESCAPED, self._unescaped, text, plain))
        _cover(covered, self._seen(SQUEEZED, self._squeezed, text, plain), _ALL_BUT_SPACE)
        return bytes(covered)

    def first_that_may_begin(self, text: bytes, whole: int) -> int:
        """The first place from which on ``text`` may be the beginning of an occurrence."""
        first = _first_that_may_begin(self._raw, text, whole)
        begin = max(0, len(text) - self.context)
        text = text[begin:whole]
        plain = undone(text)
        for view, forms in ((UNESCAPED, self._unescaped), (SQUEEZED, self._squeezed)):
            seen = view.of_undone(plain)
            place = _first_that_may_begin(forms, seen, len(seen))
            if place < len(seen):
                first = min(first, begin + view.places(text).begin(place))
        return first

    def _seen(self, view: View, forms: list[bytes], text: bytes, plain: bytes) -> Iterator[tuple[int, int]]:
        seen = view.of_undone(plain)
        found = list(_occurrences(forms, seen))
        if not found:
            return
        places = view.places(text)
        for begin, end in found:
            span = places.begin(begin), places.end(end)
            if span[1] - span[0] <= self.reach:
                yield span


def _cover(covered: bytearray, spans: Iterable[tuple[int, int]], table: bytes = _ALL) -> None:
    last, done = 0, 0
    for begin, end in spans:
        fresh = max(begin, min(done, end)) if begin >= last else begin
        covered[fresh:end] = covered[fresh:end].translate(table)
        last, done = begin, end


def _occurrences(forms: Iterable[bytes], text: bytes) -> Iterator[tuple[int, int]]:
    """All of them, also those that overlap; those of one form in order."""
    for form in forms:
        begin = text.find(form)
        while begin >= 0:
            yield begin, begin + len(form)
            begin = text.find(form, begin + 1)


def _first_that_may_begin(forms: Iterable[bytes], text: bytes, first: int) -> int:
    """The first place before ``first`` from which on ``text`` is the beginning of a form, else ``first``."""
    for form in forms:
        place = max(0, len(text) - len(form) + 1)
        while (place := text.find(form[:1], place, first)) >= 0:
            if form.startswith(text[place:]):
                first = place
                break
            place += 1
    return first
