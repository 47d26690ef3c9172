"""Messages as the bytes of AMQP frames, filled in rather than serialised anew for each.

Messages to one queue differ only in the task's id and the body:

    ┌ method frame ┐┌ header frame ────────────────────┐┌ body frame(s) ┐
    │ basic.publish││ size of body, headers, properties││ body          │
    └──────────────┘└──────────────────────────────────┘└───────────────┘
       the queue       the id, in three places

py-amqp writes the first two once, with a placeholder for the id; each message fills in its own. What goes
out is byte for byte what py-amqp would have written. No connection is touched here.
"""

from __future__ import annotations

from struct import Struct
from types import SimpleNamespace

from amqp import Message, spec
from amqp.method_framing import frame_writer
from amqp.serialization import dumps

_FRAME_HEAD = Struct(">BHI")  # kind, channel, bytes of its content
_FRAME_END = b"\xce"
_BODY_KIND = 3
_AROUND = _FRAME_HEAD.size + len(_FRAME_END)
_BEFORE_SIZE = 4  # class and weight precede the body's size in a header frame
_SIZE = Struct(">Q")
_PLACEHOLDER = "\1"  # in no id, and unlike the length that stands before it


def written(message: Message, queue: str, channel_id: int, frame_max: int) -> bytes:
    """What py-amqp writes to publish ``message`` to ``queue``: default exchange, mandatory."""
    found = bytearray()
    sink = SimpleNamespace(write=found.extend)
    write = frame_writer(SimpleNamespace(frame_max=frame_max, bytes_sent=0), sink)
    write(1, channel_id, spec.Basic.Publish, dumps("Bssbb", (0, "", queue, True, False)), message)
    return bytes(found)


def placeholder(length: int) -> str:
    """A task's id of this length that no real one can be."""
    return _PLACEHOLDER * length


class Envelope:
    """The frames before the body, for messages to one queue whose ids have one length.

    ``message``: without a body, with ``placeholder(length)`` wherever the id belongs.
    """

    def __init__(self, message: Message, queue: str, length: int, channel_id: int, frame_max: int) -> None:
        head = written(message, queue, channel_id, frame_max)
        _, _, method_bytes = _FRAME_HEAD.unpack_from(head)
        size_at = method_bytes + _AROUND + _FRAME_HEAD.size + _BEFORE_SIZE
        before, *between, after = head[size_at + _SIZE.size :].split(placeholder(length).encode())
        self._pieces = [head[:size_at], before, *between, after]
        self._channel_id = channel_id
        self._largest = frame_max - _AROUND

    def fill(self, task_id: bytes, body: bytes) -> list[bytes]:
        """The frames of one message, in pieces to be joined."""
        head, before, *rest = self._pieces
        found = [head, _SIZE.pack(len(body)), before]
        for piece in rest:
            found += (task_id, piece)
        if 0 < len(body) <= self._largest:
            found += (_FRAME_HEAD.pack(_BODY_KIND, self._channel_id, len(body)), body, _FRAME_END)
        else:
            found += self._split(body)
        return found

    def _split(self, body: bytes) -> list[bytes]:
        found: list[bytes] = []
        for start in range(0, len(body), self._largest):
            part = body[start : start + self._largest]
            found += (_FRAME_HEAD.pack(_BODY_KIND, self._channel_id, len(part)), part, _FRAME_END)
        return found
