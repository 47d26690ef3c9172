"""``manage.py preview``"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from jobs.models import Job
from tests.integration.commands.conftest import Manage

AFTER = ("--after", "2026-12-24T12:00:00Z")


def test_an_expression_in_a_zone(manage: Manage) -> None:
    told = manage(
        "preview", "0 2 * * *", "--timezone", "Europe/Berlin", "--count", "2", *AFTER, "--json"
    ).json
    assert told["fires"] == ["2026-12-25T01:00:00Z", "2026-12-26T01:00:00Z"]
    assert "02:00" in told["description"] and "Europe/Berlin" in told["description"]
    assert "2027-03-28" in told["warnings"][0]  # the clock goes forward at 2:00


@pytest.mark.parametrize("text", ["every 6h", '{"every": "6h", "anchor": "2026-12-24T00:00:00Z"}'])
def test_an_interval(manage: Manage, text: str) -> None:
    assert len(manage("preview", text, "--count", "3", *AFTER, "--json").json["fires"]) == 3


def test_an_instant(manage: Manage) -> None:
    shown = manage("preview", "2026-12-24T18:00:00Z", *AFTER).out
    assert "2026-12-24 18:00:00Z" in shown


def test_a_job_by_its_name(manage: Manage, new_job: Callable[..., Job]) -> None:
    new_job(schedule="30 4 * * *")
    assert manage("jobs", "pause", "nightly").code == 0
    told = manage("preview", "ops/nightly", "--count", "1", *AFTER)
    assert "2026-12-25 04:30:00Z" in told.out
    assert "! The job is paused" in told.out


@pytest.mark.parametrize(
    ("words", "code", "message"),
    [
        (["61 2 * * *"], 2, "61"),
        (['{"every": "10s"'], 2, "JSON"),
        (["none"], 3, "There is no job 'none'"),
        (["0 2 * * *", "--timezone", "Mars/Base"], 2, "Mars/Base"),
    ],
)
def test_what_is_neither_is_refused(manage: Manage, words: list[str], code: int, message: str) -> None:
    refused = manage("preview", *words)
    assert (refused.code, refused.err.count("\n")) == (code, 1)
    assert message in refused.err
