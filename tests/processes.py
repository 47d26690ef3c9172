"""What /proc says of processes that may end while one looks."""

from __future__ import annotations

from pathlib import Path

PROC = Path("/proc")


def text_of(path: Path) -> str:
    """The text of a file below /proc; empty where its process is gone or is another user's."""
    try:
        return path.read_text(errors="replace")
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return ""
