from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from hypothesis import given
from hypothesis import strategies as st

from executions.entries import MEMBER_BYTES, Entry, Flag, Popped, sent_member, spec_head
from executions.ids import execution_id

DUE = datetime(2026, 11, 30, 2, tzinfo=UTC)
flags = st.sampled_from([Flag.NONE, Flag.REATTACH, Flag.RECHECK, Flag.REATTACH | Flag.RECHECK])


@given(st.uuids(), st.uuids(), st.integers(1, 255), st.integers(0, 65535), flags)
def test_a_member_is_28_bytes_and_reads_back_as_it_was(
    run: UUID, spec: UUID, attempt: int, generation: int, flag: Flag
) -> None:
    entry = Entry(execution_id=run, spec_id=spec, attempt=attempt, due=DUE, generation=generation, flags=flag)
    popped = Popped(entry.member)
    assert len(entry.member) == MEMBER_BYTES == 28
    assert (popped.execution_id, popped.attempt, popped.generation, popped.flags) == (
        run,
        attempt,
        generation,
        flag,
    )
    assert popped.spec_head == spec_head(spec)
    assert (popped.text_id, popped.shard) == (str(run), entry.shard)
    assert popped.member == entry.member
    assert popped.sent_member == entry.sent_member == sent_member(run, attempt, generation)
    assert entry.member in entry.variants


def test_the_score_is_the_due_time_and_the_shard_that_of_the_run() -> None:
    run = execution_id(UUID(int=7), DUE, "schedule", 11)
    entry = Entry(execution_id=run, spec_id=UUID(int=1), attempt=1, due=DUE)
    assert (entry.score, entry.shard) == (int(DUE.timestamp() * 1000), 11)
    later = replace(entry, due=DUE + timedelta(microseconds=1))
    assert later.score == entry.score + 1  # not before it is due


def test_another_attempt_is_another_member() -> None:
    one, two = (
        Entry(execution_id=UUID(int=1), spec_id=UUID(int=2), attempt=attempt, due=DUE) for attempt in (1, 2)
    )
    assert one.member != two.member
