from __future__ import annotations

import pytest
from django.db import connection

from beat import sight as looking
from beat.sight import BLIND_AFTER_S, Sight
from executions.database import DatabaseUnavailable
from scheduler_project.kernel.clock import monotonic

pytestmark = pytest.mark.django_db


def test_a_database_that_answers_is_seen_until_it_was_not_for_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    sight = Sight()
    sight.run_once()
    assert sight.clear()
    later = monotonic() + BLIND_AFTER_S + 1
    monkeypatch.setattr(looking, "monotonic", lambda: later)
    assert not sight.clear()
    sight.run_once()
    assert sight.clear()


@pytest.mark.django_db(transaction=True)
def test_one_that_does_not_answer_is_an_error_and_not_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    sight = Sight()
    monkeypatch.setitem(connection.settings_dict, "PORT", "1")
    connection.close()
    with pytest.raises(DatabaseUnavailable):
        sight.run_once()
