"""The folder for state (``PUNCTUAL_HOME``): secrets and the addresses of the embedded parts."""

from __future__ import annotations

import json
import os
import secrets
from pathlib import Path

from scheduler_project.env import Refused

SERVICES = "services.json"
SECRET_KEY = "secret_key"  # noqa: S105 -- a file's name


def write_private(path: Path, text: str) -> None:
    """Write ``text`` so that only the owner can read it (mode 0600), in one step."""
    temporary = path.with_name(f".{path.name}.{os.getpid()}")
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
    with os.fdopen(descriptor, "w", encoding="utf-8") as file:
        file.write(text)
    temporary.replace(path)


def embedded_addresses(home: Path) -> dict[str, str]:
    """The environment that the embedded parts were last started with, or nothing."""
    text = _kept(home / SERVICES)
    try:
        found: dict[str, str] = json.loads(text or "{}")
    except ValueError:
        raise _unusable(home / SERVICES, "it is not JSON") from None
    return found


def stored_secret_key(home: Path) -> str:
    """The secret key kept in ``home``, or an empty text where there is none yet."""
    return _kept(home / SECRET_KEY).strip()


def _kept(path: Path) -> str:
    """The text of a file in the home folder, empty where there is none."""
    try:
        return path.read_text(encoding="utf-8")
    except (FileNotFoundError, NotADirectoryError):
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise _unusable(path, str(error)) from None


def _unusable(path: Path, why: str) -> Refused:
    return Refused(f"PUNCTUAL_HOME: {path} cannot be used: {why}. Remove the file, or set PUNCTUAL_HOME.")


def ensure_secret_key(home: Path) -> str:
    """The secret key kept in ``home``, made once."""
    key = stored_secret_key(home)
    if not key:
        key = secrets.token_urlsafe(50)
        write_private(home / SECRET_KEY, key + "\n")
    return key
