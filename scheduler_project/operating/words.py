"""Short texts for the columns of commands."""

from __future__ import annotations

from collections.abc import Mapping

from executions.services import Cancelling
from executions.states import State


def counted(number: int, one: str, many: str = "") -> str:
    """``1 run``, ``2 runs``."""
    return f"{number} {one if number == 1 else many or one + 's'}"


STATE_STYLES: Mapping[State, str] = {
    State.COMPLETED_ABNORMALLY: "ERROR",
    State.CANCELLED: "WARNING",
    State.PAUSED: "WARNING",
    State.ACTIVE: "SUCCESS",
}
"""Django's styles in which a line about a run is coloured on a terminal; the state is in the text, too."""

CANCELLING: Mapping[Cancelling, str] = {
    Cancelling.CANCELLED: "is cancelled",
    Cancelling.REQUESTED: "has begun, and is asked to stop",
}
