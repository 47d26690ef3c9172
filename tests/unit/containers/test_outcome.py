from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from containers.outcome import Exit, Reason, describe_code, one_line, verdict
from containers.spec import ContainerSpec

START = datetime(2026, 12, 24, 18, tzinfo=UTC)
SPEC = ContainerSpec(name="run", memory_bytes=64 * 1024**2, timeout_s=60.0)


def ended(code: int | None, after_s: float = 1.0, **changes) -> Exit:
    return replace(Exit(code, START + timedelta(seconds=after_s)), **changes)


@pytest.mark.parametrize(
    ("seen", "reason", "message"),
    [
        (ended(0), Reason.SUCCEEDED, "exit code 0"),
        (ended(3), Reason.FAILED, "exit code 3"),
        (ended(143), Reason.FAILED, "exit code 143 (SIGTERM)"),
        (
            ended(137),
            Reason.FAILED,
            "exit code 137 (SIGKILL)",
        ),
        (
            ended(137, oom=None),
            Reason.FAILED,
            "exit code 137 (SIGKILL); perhaps it needed more memory than its limit of 64 MiB",
        ),
        (
            ended(137, oom=True),
            Reason.OUT_OF_MEMORY,
            "needed more memory than its limit of 64 MiB; exit code 137 (SIGKILL)",
        ),
        (
            ended(0, oom=True),
            Reason.OUT_OF_MEMORY,
            "needed more memory than its limit of 64 MiB; exit code 0",
        ),
        (
            ended(137, after_s=61),
            Reason.TIMED_OUT,
            "stopped at its time limit of 1m; exit code 137 (SIGKILL)",
        ),
        (
            ended(143, detail="its engine shut down", outside=True),
            Reason.LOST,
            "its engine shut down; exit code 143 (SIGTERM)",
        ),
        (
            ended(0, detail="its engine shut down", outside=True),
            Reason.LOST,
            "its engine shut down; exit code 0",
        ),
        (
            ended(143, after_s=61, detail="somebody stopped it", outside=True),
            Reason.TIMED_OUT,
            "stopped at its time limit of 1m; exit code 143 (SIGTERM)",
        ),
        (
            ended(0, after_s=59.99, detail="it ended unseen", outside=True, signalled=True),
            Reason.TIMED_OUT,
            "stopped at its time limit of 1m; exit code 0",
        ),
        (
            ended(0, after_s=59, detail="it ended unseen", outside=True, signalled=True),
            Reason.LOST,
            "it ended unseen; exit code 0",
        ),
        (ended(3, after_s=61), Reason.FAILED, "exit code 3"),
        (ended(0, after_s=61), Reason.SUCCEEDED, "exit code 0"),
    ],
)
def test_the_verdict_follows_from_what_was_seen(seen, reason, message):
    outcome = verdict(seen, SPEC, START)
    assert (outcome.reason, outcome.exit_code, outcome.message) == (reason, seen.exit_code, message)


def test_a_kill_without_a_memory_limit_is_just_that():
    assert verdict(ended(137), ContainerSpec(name="run"), START).message == "exit code 137 (SIGKILL)"


def test_an_exit_without_a_code_is_lost():
    outcome = verdict(ended(None), SPEC, START)
    assert (outcome.reason, outcome.exit_code) == (Reason.LOST, None)


def test_a_command_that_did_not_start_has_no_exit_code():
    outcome = verdict(ended(127, start_error="cannot start: exec x failed"), SPEC, START)
    assert (outcome.reason, outcome.exit_code) == (Reason.START_FAILED, None)
    assert outcome.message == "cannot start: exec x failed"


@pytest.mark.parametrize("cause", [Reason.CANCELLED, Reason.TIMED_OUT])
@pytest.mark.parametrize("code", [0, 1, 137, 143, None])
def test_what_punctual_stopped_is_named_so_whatever_the_exit_code(cause, code):
    assert verdict(ended(code), SPEC, START, cause).reason is cause


def test_a_run_never_ends_before_it_starts():
    assert verdict(ended(0, after_s=-0.004), SPEC, START).finished_at == START


@pytest.mark.parametrize(
    ("code", "text"),
    [(0, "exit code 0"), (128, "exit code 128"), (139, "exit code 139 (SIGSEGV)"), (255, "exit code 255")],
)
def test_codes_in_words(code, text):
    assert describe_code(code) == text


def test_one_line_is_one_line_and_short():
    assert one_line("a\n  b\tc") == "a b c"
    assert len(one_line("x" * 1000)) == 400


def test_the_stored_values_of_the_reasons_are_fixed():
    assert {reason.value for reason in Reason} == {
        "succeeded",
        "failed",
        "out_of_memory",
        "timed_out",
        "user",
        "start_failed",
        "image_pull_failed",
        "lost",
        "secret_missing",
        "not_allowed",
        "start_timed_out",
        "unschedulable",
        "crash_loop",
        "out_of_disk",
        "evicted",
        "preempted",
        "node_lost",
        "removed",
    }
