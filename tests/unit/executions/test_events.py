from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta, timezone
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.events import Event, decode, encode, encode_queued
from executions.states import EventType
from scheduler_project.kernel.errors import InvalidValue

AT = datetime(2026, 11, 30, 2, 0, 0, 5, tzinfo=UTC)
RUN = UUID("019ad27d-3400-7003-8000-000000000001")
texts = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"))
instants = st.datetimes(datetime(1971, 1, 1), datetime(6000, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001 -- hypothesis wants it naive
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@st.composite
def events(draw: st.DrawFn) -> Event:
    return Event(
        type=draw(st.sampled_from(EventType)),
        execution_id=draw(st.uuids()),
        attempt=draw(st.integers(1, 32767)),
        at=draw(instants),
        worker=draw(texts),
        reason=draw(texts),
        message=draw(texts),
        exit_code=draw(st.none() | st.integers(-255, 255)),
        queued_at=draw(st.none() | instants),
        started_at=draw(st.none() | instants),
        retryable=draw(st.booleans()),
    )


@given(st.lists(events(), max_size=4))
def test_what_is_encoded_is_decoded_as_it_was(given_events: list[Event]) -> None:
    assert decode(encode(given_events)) == given_events
    assert [event.id for event in decode(encode(given_events))] == [event.id for event in given_events]


def test_one_message_says_that_many_runs_are_queued() -> None:
    other = UUID(int=RUN.int + 1)
    first, second = decode(encode_queued([(str(RUN), 1, 0), (str(other), 4, 7)], AT))
    assert (first.type, first.execution_id, first.attempt, first.at) == (EventType.QUEUED, RUN, 1, AT)
    assert (second.execution_id, second.attempt, second.generation) == (other, 4, 7)


def test_times_of_other_zones_are_turned_into_utc() -> None:
    body = {
        "type": "JOB_STARTED",
        "execution": str(RUN),
        "attempt": 1,
        "at": "2026-11-30T03:00:00.000005+01:00",
    }
    (event,) = decode(json.dumps({"events": [body]}))
    assert event.at == AT
    assert event.at.tzinfo is UTC
    local = Event(
        type=EventType.STARTED, execution_id=RUN, attempt=1, at=AT.astimezone(timezone(timedelta(hours=2)))
    )
    assert '"at":"2026-11-30T02:00:00.000005+00:00"' in encode([local]).decode()


def item(**fields: object) -> str:
    whole = {"type": "JOB_STARTED", "execution": str(RUN), "attempt": 1, "at": AT.isoformat(), **fields}
    return json.dumps({"events": [{name: value for name, value in whole.items() if value is not ...}]})


NONSENSE = [
    b"",
    b"\xff\xfe",
    b"nonsense",
    b"[]",
    b"{}",
    b'{"events": 5}',
    b'{"events": "JOB_STARTED"}',
    b'{"events": [5]}',
    b"[" * 100_000,
    b'{"events": ' + b"9" * 10_000 + b"}",
    item(type="JOB_EXPLODED"),
    item(type=[]),
    item(type=...),
    item(execution="nobody"),
    item(execution=5),
    item(execution=...),
    item(attempt=0),
    item(attempt=-1),
    item(attempt=32768),
    item(attempt="1"),
    item(attempt=True),
    item(attempt=1.5),
    item(at="yesterday"),
    item(at=5),
    item(at="2026-11-30T02:00:00"),
    item(at="0001-01-01T00:00:00+10:00"),
    item(exit_code="0"),
    item(exit_code=True),
    item(exit_code=1 << 31),
    item(started_at=None),
    item(runs=5),
    item(runs=[5]),
    item(runs=[[str(RUN)]]),
    item(runs=[[str(RUN), 1]]),
]


@pytest.mark.parametrize("body", NONSENSE, ids=lambda body: repr(body)[:60])
def test_nonsense_is_refused_with_a_reason(body: bytes | str) -> None:
    with pytest.raises(InvalidValue) as refused:
        decode(body)
    assert refused.value.message


@given(json_values | st.fixed_dictionaries({"events": st.lists(json_values)}))
def test_any_json_is_read_or_refused(value: object) -> None:
    try:
        decode(json.dumps(value))
    except InvalidValue:
        return


def test_text_that_no_database_can_hold_costs_nobody_the_event() -> None:
    (event,) = decode(item(message="a\0b\ud800c"))
    assert event.message == "a\N{REPLACEMENT CHARACTER}b?c"


def test_a_message_is_cut_where_it_is_made_and_where_it_is_read() -> None:
    long = "x" * 100_000
    made = Event(type=EventType.FAILED, execution_id=RUN, attempt=1, at=AT, message=long)
    (read,) = decode(item(message=long, reason=long, worker=long))
    for message in (made.message, read.message):
        assert (len(message), message[-24:]) == (2000, "xxx… (100000 characters)")
    assert len(read.reason + read.worker) < 1000
    assert decode(encode([made])) == [made]


def test_a_second_start_is_another_statement_and_so_is_a_second_pause() -> None:
    def ids(kind: EventType, **fields: object) -> UUID:
        return Event(**{"type": kind, "execution_id": RUN, "attempt": 1, "at": AT, **fields}).id  # type: ignore[arg-type]

    later = AT + timedelta(seconds=1)
    assert ids(EventType.STARTED, worker="a") != ids(EventType.STARTED, worker="b")
    assert ids(EventType.STARTED, worker="a") != ids(EventType.STARTED, worker="a", at=later)
    assert ids(EventType.STARTED, worker="a") == ids(EventType.STARTED, worker="a", reason="reattached")
    assert ids(EventType.PAUSED) != ids(EventType.PAUSED, at=later)
    assert ids(EventType.FAILED) == ids(EventType.FAILED, at=later, worker="b", message="again")
