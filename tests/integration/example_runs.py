"""Runs the programs in ``examples`` as a worker does: a process of its own, told by its environment alone."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"
PIPELINE = "python etl/daily_sales_pipeline.py"
SYSTEM_PATH = "/usr/local/bin:/usr/bin:/bin"
NO_WAREHOUSE = "postgresql://nobody@127.0.0.1:1/none"


def environment(variables: dict[str, str]) -> dict[str, str]:
    """What a run gets: its own variables and a PATH with this interpreter first, nothing of ours."""
    python = Path(sys.executable).parent
    return {"PATH": f"{python}{os.pathsep}{SYSTEM_PATH}", "PYTHONDONTWRITEBYTECODE": "1", **variables}


def run(command: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        shlex.split(command),
        cwd=EXAMPLES,
        env=environment(variables),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def load(warehouse: str, day: str, **variables: str) -> subprocess.CompletedProcess[str]:
    return run(PIPELINE, WAREHOUSE_URL=warehouse, PARAM_EXECUTION_DATE=day, **variables)


def start(command: str, **variables: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        shlex.split(command),
        cwd=EXAMPLES,
        env=environment(variables),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        text=True,
    )
