"""What a log says of an error that a message caused: never its text.

The text quotes what was refused, and PostgreSQL's DETAIL the whole row, with a run's parameters and env.
Who is to know more looks at the dead letter.
"""

from __future__ import annotations

from collections.abc import Iterable
from traceback import walk_tb
from typing import Any

from executions.events import Event

MOST_PLACES = 12
MOST_IDS = 10


def refusal(error: BaseException) -> dict[str, str]:
    """Fields of a log: ``error``, its class; ``constraint`` and ``sqlstate`` where PostgreSQL names them;
    ``places``, the innermost lines of its traceback, without their text."""
    diagnosis = getattr(error.__cause__, "diag", None)
    found = {
        "error": type(error).__name__,
        "sqlstate": getattr(diagnosis, "sqlstate", None),
        "constraint": getattr(diagnosis, "constraint_name", None),
        "places": _places(error),
    }
    return {name: text for name, text in found.items() if text}


def about(events: Iterable[Event]) -> dict[str, Any]:
    """Which runs they are about: the first ten ids, each once."""
    ids = list(dict.fromkeys(str(event.execution_id) for event in events))
    return {"executions": ", ".join(ids[:MOST_IDS]), "runs": len(ids)}


def _places(error: BaseException) -> str:
    lines = [f"{frame.f_globals.get('__name__', '?')}:{line}" for frame, line in walk_tb(error.__traceback__)]
    return " > ".join(lines[-MOST_PLACES:])
