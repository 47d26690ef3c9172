from __future__ import annotations

from collections.abc import Iterator

import pytest

from executions.store import Store, default_store
from executions.window import Window


@pytest.fixture
def store() -> Iterator[Store]:
    """This session's Redis, empty."""
    found = default_store()
    found.delete_namespace()
    yield found
    found.delete_namespace()


@pytest.fixture
def window(store: Store) -> Window:
    return Window(store)
