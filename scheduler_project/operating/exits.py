"""How a command ends, for scripts: docs/commands.md has the table, and a test compares the two."""

from __future__ import annotations

from enum import IntEnum


class Exit(IntEnum):
    """The exit status of a command of an operator."""

    DONE = 0
    REFUSED = 1
    """Not allowed, or not possible as things are now; a check or a run that was waited for has failed."""
    USAGE = 2
    """The command line is wrong: an option that there is not, a value that cannot be, a name of several."""
    NOT_FOUND = 3
    UNAVAILABLE = 4
    """A part (PostgreSQL, Redis, broker, archive) does not answer; the same command may work later."""
    INTERRUPTED = 130
    """By Ctrl-C, as of shells."""
    PIPE_CLOSED = 141
    """Nobody reads any further, as of shells."""
