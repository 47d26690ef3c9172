"""What one start was asked for."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path

from scheduler_project.env import given_variables

BASE_DIR = Path(__file__).resolve().parent.parent.parent
ONCE_LIMIT_S = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """``base``: the folder of manage.py. ``once`` ends the demo when each of its jobs had a run."""

    home: str
    port: int
    demo: bool = False
    once: bool = False
    base: str = str(BASE_DIR)

    @property
    def folder(self) -> Path:
        return Path(self.home)

    @property
    def examples(self) -> Path:
        return Path(self.base) / "examples"

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def title(self) -> str:
        """The command as it was given."""
        words = ["--demo"] * self.demo + ["--once"] * self.once
        return " ".join([sys.executable, "manage.py", "standalone", *words])

    def to_text(self) -> str:
        return json.dumps(asdict(self))

    @classmethod
    def from_text(cls, text: str) -> Options:
        return cls(**json.loads(text))


def given_environment(base: Path = BASE_DIR, environment: Mapping[str, str] = os.environ) -> dict[str, str]:
    """What was given. Not what settings.py sees: that also has the addresses of the last start's parts."""
    return given_variables(base / ".env", environment)
