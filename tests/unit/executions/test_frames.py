from __future__ import annotations

from amqp import Message
from hypothesis import given
from hypothesis import strategies as st

from executions.bus.frames import Envelope, placeholder, written

CHANNEL, FRAME_MAX = 3, 4096


def message_of(task_id: str, body: bytes) -> Message:
    headers = {"id": task_id, "root_id": task_id, "group": None, "retries": 0, "origin": "beat\1\1/7"}
    return Message(
        body,
        priority=0,
        content_type="application/json",
        content_encoding="utf-8",
        application_headers=headers,
        delivery_mode=2,
        correlation_id=task_id,
    )


@given(
    st.text("0123456789abcdef-:", min_size=3, max_size=250), st.sampled_from(["runs", "q" * 255]), st.data()
)
def test_what_is_filled_in_is_what_py_amqp_would_have_written(
    task_id: str, queue: str, data: st.DataObject
) -> None:
    """Of any length of body: none, one frame's, one byte more, several frames'."""
    body = b"x" * data.draw(st.one_of(st.integers(0, 300), st.integers(4070, 4110), st.integers(8170, 8200)))
    blank = message_of(placeholder(len(task_id)), b"")
    envelope = Envelope(blank, queue, len(task_id), CHANNEL, FRAME_MAX)
    assert b"".join(envelope.fill(task_id.encode(), body)) == written(
        message_of(task_id, body), queue, CHANNEL, FRAME_MAX
    )
