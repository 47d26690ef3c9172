"""What the commands that read files of jobs share."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from django.contrib.auth.models import Group
from django.core.management.base import CommandError

from access.policy import System
from jobs.declared.comparing import Action, Step

STDIN = "-"


def read_text(path: str) -> str:
    """The file's text, or the standard input's for ``-``; CommandError where it cannot be read."""
    try:
        raw = sys.stdin.buffer.read() if path == STDIN else Path(path).read_bytes()
        return raw.decode("utf-8-sig")
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}.") from error
    except UnicodeDecodeError as error:
        raise CommandError(f"{path}: not UTF-8: {error}.") from error


def shown_path(path: str) -> str:
    return "standard input" if path == STDIN else path


def operator(command: str) -> System:
    """Whoever may start a command of this program has its database, and so may do everything."""
    return System(f"manage.py {command}")


def new_teams(steps: Sequence[Step]) -> list[str]:
    """The owners that are not there yet, and are made together with their jobs."""
    owners = {step.key[0] for step in steps if step.action is Action.CREATE}
    return sorted(owners - set(Group.objects.filter(name__in=owners).values_list("name", flat=True)))


def counted(steps: Sequence[Step], *, done: bool = False) -> str:
    """``2 to create, 1 to update, 0 to archive, 5 as they are``, or ``2 created, …`` once it is done."""
    numbers = {action: sum(step.action is action for step in steps) for action in Action}
    words = {action: f"{action}d" if done else f"to {action}" for action in Action}
    doing = [f"{numbers[action]} {words[action]}" for action in Action if action is not Action.KEEP]
    return ", ".join([*doing, f"{numbers[Action.KEEP]} as they are"])
