"""Folders that only their owner may look into."""

from __future__ import annotations

from pathlib import Path


def make_private_folder(path: Path) -> None:
    """Make ``path`` and each missing folder above it with mode 0700; what is there stays as it is."""
    if path.is_dir():
        return
    make_private_folder(path.parent)
    path.mkdir(mode=0o700, exist_ok=True)
