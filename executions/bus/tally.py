"""Publisher confirms, counted (pure): which delivery tags are settled, and which were refused.

A channel in confirm mode numbers its messages from 1. The broker acknowledges or refuses them
singly or up to a number, in any order. What is settled without a gap is one number; only what was
settled beyond a gap is remembered singly.
"""

from __future__ import annotations


class Tally:
    def __init__(self) -> None:
        self._next = 1
        self._low = 1  # everything below is settled
        self._beyond: set[int] = set()
        self._refused: set[int] = set()

    def reserve(self, count: int) -> range:
        """The tags of the next ``count`` messages."""
        tags = range(self._next, self._next + count)
        self._next = tags.stop
        return tags

    def acknowledge(self, tag: int, multiple: bool) -> None:
        if multiple:
            self._settle_up_to(tag)
        else:
            self._settle_one(tag)

    def refuse(self, tag: int, multiple: bool) -> None:
        self._refused |= (set(range(self._low, tag + 1)) - self._beyond) if multiple else {tag}
        self.acknowledge(tag, multiple)

    def unsettled(self, tags: range) -> int:
        """How many of ``tags`` the broker has yet to speak about."""
        left = tags.stop - max(self._low, tags.start)
        return 0 if left <= 0 else left - sum(tag in tags for tag in self._beyond)

    def take_refused(self, tags: range) -> set[int]:
        """Those of ``tags`` that were refused; told once."""
        found = {tag for tag in self._refused if tag in tags}
        self._refused -= found
        return found

    def _settle_up_to(self, tag: int) -> None:
        if tag >= self._low:
            self._low = tag + 1
            self._beyond = {other for other in self._beyond if other > tag}
            self._close_gap()

    def _settle_one(self, tag: int) -> None:
        if tag >= self._low:
            self._beyond.add(tag)
            self._close_gap()

    def _close_gap(self) -> None:
        while self._low in self._beyond:
            self._beyond.remove(self._low)
            self._low += 1
