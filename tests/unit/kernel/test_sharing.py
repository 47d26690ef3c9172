from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from scheduler_project.kernel.sharing import Shared


def test_fifty_who_ask_at_once_get_one_answer() -> None:
    shared, made, begun = Shared(60.0), [], threading.Barrier(50)

    def make() -> int:
        made.append(1)
        return len(made)

    def ask(_: int) -> int:
        begun.wait(10)
        answer: int = shared.get("all", make)
        return answer

    with ThreadPoolExecutor(50) as pool:
        assert list(pool.map(ask, range(50))) == [1] * 50
    assert shared.get("other", make) == 2


def test_an_answer_goes_after_its_time_and_an_error_is_not_kept() -> None:
    shared, made = Shared(0.0), iter(range(9))
    assert [shared.get("key", lambda: next(made)) for _ in range(3)] == [0, 1, 2]
    kept = Shared(60.0)
    with pytest.raises(ZeroDivisionError):
        kept.get("key", lambda: 1 // 0)
    assert kept.get("key", lambda: "well") == "well"
    assert kept.get("key", lambda: 1 // 0) == "well"
