from __future__ import annotations

from contextlib import closing
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from executions.log_places import log_store
from executions.retention import keep_up
from executions.transitions import record
from scheduler_project.kernel.errors import NotFound
from tests.integration.making import COMPLETED, make_run, said

DAY = timedelta(days=1)
NOW = datetime(2031, 5, 10, 12, tzinfo=UTC)
pytestmark = pytest.mark.django_db


def write(run: Any) -> None:
    with closing(log_store().writer(run, 1)) as log:
        log.write(b"its output\n")


def read(run: Any) -> bytes:
    return b"".join(log_store().read(run, 1))


def of_this_test(days: list[str]) -> list[str]:
    """Without what other tests have in the archive."""
    return [day for day in days if day >= "2031"]


def test_output_goes_with_its_day_and_stays_with_a_run_that_has_not_ended(
    settings: Any, tmp_path: Path
) -> None:
    settings.PUNCTUAL_LOG_DIR = tmp_path
    for back in (40, 35, 20):
        keep_up(NOW - back * DAY, ahead=0, retention=3650 * DAY)
    old, held, young = (make_run(due=NOW - back * DAY) for back in (40, 35, 20))
    for run in (old, held, young):
        write(run)
    record([said(COMPLETED, run) for run in (old, young)], NOW)
    done = keep_up(NOW, ahead=0, retention=30 * DAY)
    assert of_this_test(done["logs"]) == ["2031-03-31"]
    with pytest.raises(NotFound):
        read(old)
    assert read(held) == read(young) == b"its output\n"
    record([said(COMPLETED, held)], NOW)
    assert of_this_test(keep_up(NOW, ahead=0, retention=30 * DAY)["logs"]) == ["2031-04-05"]
