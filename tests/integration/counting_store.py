"""A store that counts what goes to Redis: costs that do not depend on the machine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import get_ident
from typing import Any

from executions.store import Call, Script, Store


class CountingStore(Store):
    """``round_trips`` to Redis, and ``set_keys``: plain keys that were set, since ``reset``, by the thread
    that said so."""

    def __init__(self, url: str, namespace: str) -> None:
        super().__init__(url, namespace)
        self.reset()

    def reset(self) -> None:
        self.round_trips = self.set_keys = 0
        self._thread = get_ident()

    def _count(self) -> None:
        self.round_trips += get_ident() == self._thread

    def run(self, script: Script, keys: Sequence[str], arguments: Sequence[Any]) -> Any:
        self._count()
        return super().run(script, keys, arguments)

    def run_each(self, script: Script, calls: Sequence[Call]) -> list[Any]:
        self._count()
        return super().run_each(script, calls)

    def batch(self, fill: Callable[[Any], object], *, atomic: bool = False) -> list[Any]:
        def counted(pipe: Any) -> None:
            fill(pipe)
            self.set_keys += sum(arguments[0] == "SET" for arguments, _ in pipe.command_stack)

        self._count()
        return super().batch(counted, atomic=atomic)

    def now_ms(self) -> int:
        self._count()
        return super().now_ms()
