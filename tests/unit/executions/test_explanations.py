"""How a run ended, in words."""

from __future__ import annotations

import re
import signal
from pathlib import Path

import pytest

from containers.outcome import Reason
from executions.explanations import REASONS, SIGNALS, explain, explain_code

STATES_MD = Path(__file__).resolve().parents[3] / "docs/states.md"


def test_every_reason_that_a_row_may_have_is_explained() -> None:
    text = STATES_MD.read_text(encoding="utf-8").partition("\n`reason` says why")[2]
    documented = set(re.findall(r"`([a-z]+(?:_[a-z]+)*)`", text)) - {"replace"}
    assert documented | {str(reason) for reason in Reason} <= set(REASONS)


def test_every_signal_that_is_explained_is_one() -> None:
    assert set(SIGNALS) <= {item.name for item in signal.Signals}


@pytest.mark.parametrize(
    ("reason", "code", "said"),
    [
        ("failed", 3, "Its program failed. Exit code 3."),
        ("failed", 127, "Exit code 127: the command was not found"),
        ("failed", 139, "Exit code 139 (SIGSEGV): it touched memory that is not its own"),
        ("out_of_memory", 137, "Raise container.resources.memory.limit"),
        ("timed_out", 143, "Exit code 143 (SIGTERM): told to end."),
        ("succeeded", 0, "It ended as it should."),
        ("of_a_newer_worker", None, "Reason: of a newer worker."),
    ],
)
def test_reason_code_and_advice_are_sentences(reason: str, code: int | None, said: str) -> None:
    assert said in str(explain(reason, code))


def test_what_has_no_reason_yet_has_no_explanation() -> None:
    assert explain("", 3) is None
    assert explain_code(0) == explain_code(None) == ""
