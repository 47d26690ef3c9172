"""Retry policies: pauses, what is retried and for how long; for any policy, and for what people write."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.events import Event
from executions.folding import Context, Run, Timing, fold
from executions.retry_policies import RETRIED, RetryPolicy, read_policy
from executions.states import EventType, State
from scheduler_project.kernel.durations import format_duration
from scheduler_project.kernel.errors import InvalidFields

S = timedelta(seconds=1)
NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
TIMING = Timing(enqueue_timeout=300 * S, lease_check=10 * S)

lengths = st.integers(1, 10**10).map(lambda millis: timedelta(milliseconds=millis))
reasons = st.lists(st.sampled_from(RETRIED), unique=True).map(lambda found: tuple(sorted(found)))
codes = st.lists(st.integers(1, 255), unique=True, max_size=5).map(lambda found: tuple(sorted(found)))
shared: dict[str, Any] = {
    "retries": st.integers(0, 100),
    "delay": st.one_of(st.just(timedelta(0)), lengths),
    "jitter": st.floats(0, 1),
    "reasons": reasons,
    "exit_codes": codes,
    "max_elapsed": st.none() | lengths,
}
fixed = st.builds(RetryPolicy, **shared)
growing = st.builds(
    RetryPolicy, **shared, backoff=st.just("exponential"), factor=st.floats(1, 10), max_delay=lengths
)
policies = fixed | growing


@given(growing, st.uuids(), st.integers(1, 100))
def test_no_pause_is_longer_than_the_cap(policy: RetryPolicy, run: UUID, retry: int) -> None:
    assert timedelta(0) <= policy.pause(retry, run) <= policy.full_pause(retry) <= policy.max_delay


@given(policies, st.uuids(), st.integers(1, 100))
def test_chance_takes_its_part_at_most_and_the_same_of_the_same(
    policy: RetryPolicy, run: UUID, retry: int
) -> None:
    full, pause = policy.full_pause(retry), policy.pause(retry, run)
    assert full * (1 - policy.jitter) - timedelta(milliseconds=1) <= pause <= full
    assert pause == replace(policy).pause(retry, UUID(str(run)))


def test_chance_differs_between_runs_and_between_attempts() -> None:
    policy = RetryPolicy(5, 600 * S, jitter=1.0)
    pauses = {policy.pause(retry, UUID(int=run)) for retry in range(1, 5) for run in range(50)}
    assert len(pauses) == 200
    assert min(pauses) < 60 * S
    assert max(pauses) > 540 * S


@given(growing, st.integers(1, 99))
def test_pauses_grow_until_the_cap(policy: RetryPolicy, retry: int) -> None:
    assert policy.full_pause(retry) <= policy.full_pause(retry + 1)


@given(
    policies,
    st.uuids(),
    st.lists(st.tuples(st.sampled_from(RETRIED), st.integers(1, 255), lengths), min_size=1, max_size=20),
)
def test_a_run_that_always_fails_ends_and_no_attempt_is_due_too_late(
    policy: RetryPolicy, identity: UUID, failures: list[tuple[str, int, timedelta]]
) -> None:
    run, now = Run(identity, State.WAITING, check_at=NOW), NOW
    for number, (reason, code, lasted) in enumerate(failures, start=1):
        started = now
        now += lasted
        said = Event(
            type=EventType.FAILED, execution_id=identity, attempt=number, at=now, started_at=started,
            reason=reason, exit_code=code, message="said",
        )  # fmt: skip
        run, _ = fold(run, [said], Context(policy, TIMING, now))
        if run.state != State.WAITING:
            break
        assert number <= policy.retries
        assert run.check_at is not None
        if policy.max_elapsed is not None:
            assert run.check_at - NOW <= policy.max_elapsed
        if policy.reasons or policy.exit_codes:
            assert reason in policy.reasons or code in policy.exit_codes
        assert run.check_at - now == policy.pause(number, identity)
        now = run.check_at
    else:
        assert len(failures) <= policy.retries
        return
    assert run.state == State.COMPLETED_ABNORMALLY
    exhausted = number > policy.retries
    assert ("not tried again" in run.message) is not exhausted
    assert (run.reason, run.exit_code) == (reason, code)


def test_losses_are_tried_again_whatever_the_policy_says() -> None:
    policy = RetryPolicy(0, S, exit_codes=(75,), max_elapsed=S)
    run = Run(UUID(int=1), State.ACTIVE, started_at=NOW, first_started_at=NOW)
    lost = Event(type=EventType.LOST, execution_id=run.id, attempt=1, at=NOW + 900 * S, reason="lost")
    after, _ = fold(run, [lost], Context(policy, TIMING, NOW + 900 * S))
    assert (after.state, after.attempt) == (State.WAITING, 2)


@given(policies)
def test_what_is_stored_reads_back_as_it_is(policy: RetryPolicy) -> None:
    read = read_policy(policy.to_json())
    assert replace(read, retries=policy.retries, delay=policy.delay) == policy
    assert read_policy(read.to_json()) == read


@pytest.mark.parametrize(
    "given_", [None, {}, {"backoff": "fixed"}, {"factor": 2, "jitter": 0, "reasons": []}]
)
def test_what_says_the_default_is_stored_as_nothing(given_: Any) -> None:
    assert read_policy(given_).to_json() == {}


@pytest.mark.parametrize(
    ("said", "path", "text"),
    [
        ({"backoff": "linear"}, "backoff", "'linear' is not one of fixed, exponential"),
        ({"backoff": "exponential", "factor": 0.5}, "factor", "0.5 is not a number from 1 to 10"),
        ({"backoff": "exponential", "factor": True}, "factor", "True is not a number"),
        ({"backoff": "exponential", "maxDelay": "soon"}, "maxDelay", "'soon' is not a length of time"),
        ({"maxDelay": "1h"}, "maxDelay", "for backoff 'exponential'"),
        ({"factor": 3}, "factor", "for backoff 'exponential'"),
        ({"jitter": 1.5}, "jitter", "1.5 is not a number from 0 to 1"),
        ({"jitter": float("nan")}, "jitter", "is not a number from 0 to 1"),
        ({"reasons": "failed"}, "reasons", "'failed' is not a list"),
        ({"reasons": ["failed", "lost"]}, "reasons.1", "'lost' is not one of failed, timed_out"),
        ({"exitCodes": [0]}, "exitCodes.0", "0 is not a whole number from 1 to 255"),
        ({"exitCodes": ["75"]}, "exitCodes.0", "'75' is not a whole number"),
        ({"maxElapsed": "0s"}, "maxElapsed", "'0s' is not between 1ms"),
        ({"tries": 3}, "tries", "'tries' is not a field here. Allowed: backoff, factor"),
    ],
)
def test_nonsense_is_refused_by_its_path(said: Any, path: str, text: str) -> None:
    with pytest.raises(InvalidFields) as refused:
        read_policy(said)
    ((found, texts),) = refused.value.errors.items()
    assert found == f"retryPolicy.{path}"
    assert text in texts[0]


@pytest.mark.parametrize(
    ("retries", "said", "sentence"),
    [
        (0, {"jitter": 0.5}, "none"),
        (1, {}, "once, after 1m"),
        (3, {}, "up to 3 times, after 1m"),
        (3, {"backoff": "exponential"}, "up to 3 times, after 1m, 2m, 4m"),
        (
            9,
            {"backoff": "exponential", "factor": 3, "maxDelay": "1h", "jitter": 0.2},
            "up to 9 times, after 1m, 3m, 9m, 27m, …, 1h; each up to 20% shorter by chance",
        ),
        (
            2,
            {"reasons": ["timed_out"], "exitCodes": [75, 3], "maxElapsed": "6h"},
            "up to 2 times, after 1m; only after timed out or after exit codes 3, 75;"
            " none later than 6h after its first start",
        ),
    ],
)
def test_it_says_for_people_what_it_does(retries: int, said: Any, sentence: str) -> None:
    assert replace(read_policy(said), retries=retries, delay=60 * S).sentence() == sentence


@given(policies)
def test_any_policy_can_be_told(policy: RetryPolicy) -> None:
    assert policy.sentence()
    if policy.retries and policy.max_elapsed is not None:
        assert format_duration(policy.max_elapsed) in policy.sentence()
