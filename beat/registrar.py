"""The registrar: tells workers whether the executions of containers are over (executions/endings.py)."""

from __future__ import annotations

from beat.ownership import Ownership
from executions.database import database_available
from executions.endings import Endings, ending
from executions.models import Execution
from executions.states import State
from executions.store import Store

PERIOD_S = 2.0


class Registrar:
    def __init__(self, store: Store, ownership: Ownership) -> None:
        self._endings = Endings(store)
        self._ownership = ownership

    def run_once(self) -> float:
        """Answer what was asked of the owned shards; the seconds until the next time."""
        shards = self._ownership.owned()
        asked = self._endings.questions(shards) if shards else []
        if asked:
            with database_available():
                rows = Execution.objects.filter(id__in=asked).values_list("id", "state", "attempt")
                known = {run: ending(State(state), attempt) for run, state, attempt in rows}
            self._endings.answer(asked, known)
        return PERIOD_S
