from __future__ import annotations

from datetime import timedelta

import pytest

from beat.ownership import Ownership
from executions import database
from executions.store import Store


@pytest.fixture
def ownership(store: Store) -> Ownership:
    """A beat that owns all 16 shards."""
    found = Ownership(store, "beat", 16, timedelta(minutes=1))
    found.renew()
    return found


@pytest.fixture(autouse=True)
def one_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    """A test's transaction lives in its connection, which the services would close as an old one."""
    monkeypatch.setattr(database, "close_old_connections", lambda: None)
