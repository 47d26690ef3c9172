"""The Python processes of the tree, each with its environment and its way to end."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping
from datetime import datetime
from pathlib import Path

from scheduler_project.standalone import closing, programs
from scheduler_project.standalone.children import Program
from scheduler_project.standalone.options import Options
from scheduler_project.standalone.parts import Parts
from scheduler_project.standalone.reporter import report

CELERY = ("-A", "scheduler_project")


class Plan:
    """Builds the programs of one start; ``runtime`` is where runs run."""

    def __init__(self, options: Options, parts: Parts, logs: Path, runtime: str) -> None:
        self._options = options
        self._logs = logs
        self._env = parts.environment(runtime)
        self._worker_env = parts.worker_environment(runtime)
        # Where nobody asked for more, Celery's processes say only what is wrong.
        self._level = ("-l", self._env.get("PUNCTUAL_LOG_LEVEL", "WARNING"))

    def migration(self) -> Program:
        return self._once("migrate", programs.manage("migrate", "--no-input", "-v", "0"))

    def services(self, bound: socket.socket) -> list[Program]:
        """All that stay, in the order in which they are started; ``bound`` is the web server's socket."""
        maintenance = ("worker", "-Q", "maintenance", "-P", "solo", "-n", "maintenance@%h", *self._level)
        return [
            self._manage("recorder", "record_events"),
            self._manage("auditor", "audit_events"),
            self._celery("worker", self._worker_env, "worker", *self._level, stop_timeout_s=30.0),
            self._celery("beat", self._env, "beat", *self._level),
            Program(
                name="web",
                body=programs.web(bound),
                env=self._env,
                log=self._log("web"),
                title="waitress-serve scheduler_project.wsgi:application",
                keep=frozenset({bound.fileno()}),
            ),
            self._celery("maintenance", self._env, *maintenance),
        ]

    def reporter(self, begun: datetime) -> Program:
        """Shows state changes on the terminal; in the demo with ``once`` its end is the verdict."""
        options = self._options
        return Program(
            name="reporter",
            body=lambda: report(options, begun),
            env=self._env,
            log=self._log("reporter"),
            title="punctual standalone: reporter",
            on_terminal=True,
            restart=not options.once,
        )

    def drain(self) -> Program:
        return self._once("drain", closing.await_drained)

    def _once(self, name: str, body: Callable[[], int]) -> Program:
        return Program(
            name=name, body=body, env=self._env, log=self._log(name), title=f"punctual {name}", restart=False
        )

    def _manage(self, name: str, command: str) -> Program:
        return Program(
            name=name,
            body=programs.manage(command),
            env=self._env,
            log=self._log(name),
            title=_title("manage.py", command),
        )

    def _celery(
        self, name: str, env: Mapping[str, str], *words: str, stop_timeout_s: float = 15.0
    ) -> Program:
        return Program(
            name=name,
            body=programs.celery(*CELERY, *words),
            env=env,
            log=self._log(name),
            title=_title("-m celery", *CELERY, *words),
            stop_timeout_s=stop_timeout_s,
        )

    def _log(self, name: str) -> Path:
        return self._logs / f"{name}.log"


def docker_check(env: Mapping[str, str], log: Path) -> Program:
    """Ends with 0 where a Docker engine answers."""
    return Program(name="docker check", body=closing.docker_answers, env=env, log=log, restart=False)


def _title(*words: str) -> str:
    return " ".join([sys.executable, *words])
