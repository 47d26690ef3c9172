"""Small questions and last acts that need Punctual's other packages."""

from __future__ import annotations

import http.client
from pathlib import Path

from scheduler_project.standalone.claims import ADDRESS


def web_answers(port: int) -> bool:
    """Whether anything comes back from the web server, whatever its status."""
    connection = http.client.HTTPConnection(ADDRESS, port, timeout=5)
    try:
        connection.request("GET", "/admin/login/", headers={"Host": "localhost"})
        connection.getresponse().read()
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
    return True


def end_runs(home: Path, grace_s: float) -> list[str]:
    """End all runs of the process runtime; the names of those that ran."""
    from containers.process.runtime import ProcessOptions, ProcessRuntime

    return ProcessRuntime(ProcessOptions(home=home)).kill_all(grace_s)


def docker_answers() -> int:
    """The exit code of the docker check: 0 where an engine answers."""
    from containers.registry import detect

    return 0 if detect() else 1
