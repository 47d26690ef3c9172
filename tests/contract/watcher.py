"""A watching process to be killed: ``python -m tests.contract.watcher KIND IMAGE HOME RUN_ID SCRIPT``."""

from __future__ import annotations

import sys
import uuid
from pathlib import Path

from containers.spec import ContainerSpec, container_name
from tests.contract.bench import Bench, Run

if __name__ == "__main__":
    kind, image, home, run_id, script = sys.argv[1:]
    spec = ContainerSpec(
        name=container_name(uuid.UUID(run_id), 1), argv=("sh", "-c", script), image=image, grace_s=0.5
    )
    Run(Bench(kind, image, Path(home)), uuid.UUID(run_id), spec).to_end()
