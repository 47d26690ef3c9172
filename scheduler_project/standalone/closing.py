"""Small questions and last acts that need Punctual's other packages."""

from __future__ import annotations

import http.client
import time
from pathlib import Path

from scheduler_project.standalone.claims import ADDRESS
from scheduler_project.startup import set_up_django


def web_answers(port: int) -> bool:
    """Whether anything comes back from the web server, whatever its status."""
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=2)
    try:
        connection.request("GET", "/healthz", headers={"Host": "localhost"})
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def end_runs(home: Path, grace_s: float) -> list[str]:
    """End all runs of the process runtime and forget them; the names of those that ran.

    Forgotten, they are lost to the next start, which begins their next attempt: that the
    system was stopped is not the job's failure.
    """
    from containers.process.runtime import ProcessOptions, ProcessRuntime

    runtime = ProcessRuntime(ProcessOptions(home=home))
    ended = runtime.kill_all(grace_s)
    for name in ended:
        runtime.forget(name)
    return ended


def docker_answers() -> int:
    """The exit code of the docker check: 0 where an engine answers."""
    from containers.registry import detect

    return 0 if detect() else 1


def await_drained() -> int:
    """Returns 0 when the queues of the recorder and the auditor are empty; it waits for that."""
    set_up_django()
    from executions.bus.depths import messages_waiting
    from executions.bus.topology import AUDITOR, RECORDER

    while messages_waiting([RECORDER, AUDITOR]):
        time.sleep(0.05)
    return 0
