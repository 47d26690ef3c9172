"""What every entry point does first, and how it ends where it cannot go on: one line, status 1."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import NoReturn

from scheduler_project.env import Refused, nearest
from scheduler_project.kernel.errors import PunctualError
from scheduler_project.kernel.texts import escaped, shortened

NO_DATABASE = "DATABASE_URL: the database does not answer. Start it, or give the address of one. ({reason})"
UNMIGRATED = "DATABASE_URL: the database is not as this version needs it. Run 'manage.py migrate'. ({reason})"
SETTINGS = "scheduler_project.settings"


class CannotStart(PunctualError):
    """A process cannot start with these settings."""


def run_command(words: list[str]) -> None:
    """Django's command line, with ``words[0]`` its name."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    from django.core.management import execute_from_command_line
    from django.db import OperationalError, ProgrammingError

    try:
        execute_from_command_line(words)
    except Refused as refusal:
        end_with(refusal)
    except (ProgrammingError, OperationalError) as error:
        told = unmigrated(error) or unreachable(error)
        if not told:
            raise
        end_with(CannotStart(told))


def unmigrated(error: Exception) -> str:
    """What to say of a database that lacks a table or a column; empty where the error is another."""
    if not _is_unmigrated(error):
        return ""
    return UNMIGRATED.format(reason=_on_one_line(str(error).partition("\n")[0]))


def unreachable(error: Exception) -> str:
    """What to say of a database that does not answer; empty where the error is another."""
    from django.db import InterfaceError, OperationalError

    if not isinstance(error, OperationalError | InterfaceError) or not _is_unreachable(error):
        return ""
    return NO_DATABASE.format(reason=_on_one_line(str(error)))


def _is_unreachable(error: Exception) -> bool:
    """Whether there was no connection, or it broke; not whether a statement was refused.

    Classes 08 and 57P are those of lost connections; where none came about there is no code.
    """
    code = getattr(error.__cause__, "sqlstate", "")
    return code is None or code.startswith(("08", "57P"))


def _is_unmigrated(error: Exception) -> bool:
    """Whether a table or a column is missing (undefined_column, undefined_table)."""
    return getattr(error.__cause__, "sqlstate", "") in {"42703", "42P01"}


def _on_one_line(text: str) -> str:
    return shortened(escaped(" ".join(text.split())))


def read_settings() -> None:
    """For entry points that serve or are Celery's."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", SETTINGS)
    from django.conf import settings

    try:
        settings.INSTALLED_APPS  # noqa: B018 -- the first look reads them all
    except Refused as refusal:
        end_with(refusal)


def set_up_django() -> None:
    """Settings and models, for what is no command of Django."""
    read_settings()
    import django
    from django.apps import apps

    if not apps.ready:
        django.setup()


def end_with(refusal: Exception) -> NoReturn:
    """End this process with one line on stderr."""
    raise SystemExit(str(refusal)) from None


# --- What only some processes need -----------------------------------------------------------


def require_parts(*names: str) -> None:
    """CannotStart where the address of one of these parts is missing."""
    from scheduler_project.checks import missing_parts

    for missing in missing_parts(names):
        raise CannotStart(f"{missing.msg} {missing.hint}")


def require_places() -> None:
    """CannotStart where a worker cannot write its logs, its local processes have no folder to run in, or it
    cannot read where its secrets are kept.

    Not asked of others: the web server only reads the logs, and may be on another machine.
    """
    from django.conf import settings

    logs = settings.PUNCTUAL_LOG_DIR
    at_home = logs.is_relative_to(settings.PUNCTUAL_HOME)
    _require_writable("PUNCTUAL_HOME" if at_home else "PUNCTUAL_LOG_DIR", logs)
    folder = settings.PUNCTUAL_PROCESS_WORKDIR
    if folder and settings.PUNCTUAL_RUNTIME == "process" and not Path(folder).is_dir():
        raise CannotStart(f"PUNCTUAL_PROCESS_WORKDIR: there is no {folder!r}. Allowed: a folder that exists.")
    secrets = settings.PUNCTUAL_SECRETS_DIR
    if secrets and not (Path(secrets).is_dir() and os.access(secrets, os.R_OK | os.X_OK)):
        raise CannotStart(f"PUNCTUAL_SECRETS_DIR: {secrets!r} cannot be read. Allowed: a folder that can.")


def _require_writable(name: str, folder: Path) -> None:
    """It, or the folder in which it is to be made."""
    try:
        with tempfile.TemporaryFile(dir=nearest(folder)):
            pass
    except OSError:
        text = f"{name}: {str(folder)!r} cannot be written. Allowed: a folder that can."
        raise CannotStart(text) from None
