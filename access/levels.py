"""How much somebody may do: four levels, each of which includes those below it."""

from __future__ import annotations

from enum import IntEnum


class Level(IntEnum):
    NONE = 0
    VIEW = 1  # look at jobs, runs and their logs
    OPERATE = 2  # run, cancel, pause, resume, backfill, reschedule, retry
    EDIT = 3  # make, change and delete jobs

    @property
    def verb(self) -> str:
        """As in "this needs the right to …"."""
        return self.name.lower()


SCOPES = {"read": Level.VIEW, "operate": Level.OPERATE, "edit": Level.EDIT}  # what tokens call them
SCOPE_OF = {level: scope for scope, level in SCOPES.items()}
