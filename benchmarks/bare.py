"""A bare publisher: the most that the broker takes, for a rate to compare ours with.

It holds the finished frames of all messages, writes them a thousand at a time to a quorum queue over one
connection, and counts the confirms. It pops nothing, makes no message and notes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from kombu import Connection

from executions.bus.batches import JSON, RunMessage, TaskHeaders
from executions.bus.frames import Envelope, placeholder
from executions.bus.tally import Tally
from scheduler_project.kernel.clock import monotonic

A_WRITE = 1000


def publish_bare(url: str, messages: Sequence[RunMessage], headers: TaskHeaders) -> float:
    """Seconds from the first write to the last confirm. The queues must be there."""
    with Connection(url) as connection, connection.channel() as channel:
        amqp: Any = connection.connection
        tally = Tally()
        channel.events["basic_ack"].add(tally.acknowledge)  # type: ignore[attr-defined]
        channel.confirm_select()  # type: ignore[attr-defined]
        writes = _frames(messages, headers, channel, amqp.frame_max)
        tags = tally.reserve(len(messages))
        began = monotonic()
        for data in writes:
            amqp.transport.write(data)
            _read(connection, 0)
        while tally.unsettled(tags):
            _read(connection, 1)
        return monotonic() - began


def _frames(
    messages: Sequence[RunMessage], headers: TaskHeaders, channel: Any, frame_max: int
) -> list[bytes]:
    queue, length = messages[0].queue, len(messages[0].task_id)
    task_id = placeholder(length)
    properties = {"delivery_mode": JSON["delivery_mode"], "correlation_id": task_id}
    message = channel.prepare_message(
        b"", 0, JSON["content_type"], JSON["content_encoding"], headers.of(task_id), properties
    )
    envelope = Envelope(message, queue, length, channel.channel_id, frame_max)
    filled = [b"".join(envelope.fill(item.task_id.encode(), item.body)) for item in messages]
    return [b"".join(filled[start : start + A_WRITE]) for start in range(0, len(filled), A_WRITE)]


def _read(connection: Connection, timeout_s: float) -> None:
    with suppress(TimeoutError):
        while True:
            connection.drain_events(timeout=timeout_s)
            timeout_s = 0
