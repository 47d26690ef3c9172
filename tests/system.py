"""A whole Punctual for the tests: real processes over places of their own in the real services.

``System`` has a database that is migrated, a Redis database and a virtual host (or kombu's
Redis transport), and starts beats, workers, recorders and auditors as a deployment would.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any

import psycopg
from psycopg.rows import dict_row

from scheduler_project.kernel.clock import monotonic
from scheduler_project.places.processes import BIN, NOWHERE, ROOT, Process, command_of, environment_of
from tests.places import keep
from tests.services import Services, database, free_port, own_services, unique_name

# Process and what belongs to it are under their names here too.
__all__ = ["BIN", "NOWHERE", "PATIENCE_S", "ROOT", "Process", "System", "running_system"]

PATIENCE_S = 120.0  # with a loaded machine


class Console:
    """The other end of tests/console.py."""

    def __init__(self, env: Mapping[str, str], log: Path) -> None:
        with log.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "tests.console"],
                cwd=ROOT,
                env=dict(env),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=output,
                text=True,
            )
        self._log = log

    def run(self, code: str, **names: Any) -> Any:
        """Run ``code``, which finds ``names``; what it leaves in ``result``."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps([code, names]) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the console ended:\n{self._log.read_text()[-1500:]}"
        answer = json.loads(line)
        assert "error" not in answer, answer["error"]
        return answer["result"]

    def close(self) -> None:
        self._process.communicate()  # no more input: it ends


class System:
    def __init__(self, env: dict[str, str], home: Path) -> None:
        self.env = env
        self.home = home
        self.processes: list[Process] = []
        self.port = free_port()
        self.console = Console(env, home / "console.log")
        self._connect()

    def _connect(self) -> None:
        self._database = psycopg.connect(self.database_url, autocommit=True, row_factory=dict_row)

    def reconnect(self) -> None:
        """After PostgreSQL was away."""
        self._database.close()
        self._connect()
        self.console.run("from django.db import connections; connections.close_all(); result = None")

    @property
    def site(self) -> str:
        """Where the process ``web`` answers."""
        return f"http://127.0.0.1:{self.port}"

    @property
    def database_url(self) -> str:
        return self.env["DATABASE_URL"]

    def manage(self, *arguments: str) -> str:
        """Run a management command to its end; its standard output."""
        done = subprocess.run(
            [sys.executable, "manage.py", *arguments],
            cwd=ROOT,
            env=self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )
        assert done.returncode == 0, done.stderr + done.stdout
        return done.stdout

    def start(self, kind: str, *, prefix: Sequence[str] = (), **env: str) -> Process:
        """``prefix``: words before its command, which end by becoming it."""
        name = f"{kind}{len(self.processes)}"
        own = {**environment_of(kind, self.env), **env}
        command = [*prefix, *command_of(name, self.port)]
        process = Process(name, command, own, self.home / f"{name}.log")
        self.processes.append(process)
        return process

    def start_all(self, kinds: str = "beat worker recorder auditor") -> list[Process]:
        return [self.start(kind) for kind in kinds.split()]

    def close(self) -> None:
        self.stop_all()
        self.console.close()
        self._database.close()

    def stop_all(self) -> None:
        for process in self.processes:
            if process.alive:
                process.signal(signal.SIGCONT)
                process.kill()
        self.processes.clear()

    def query(self, text: str, *parameters: Any) -> list[dict[str, Any]]:
        return self._database.execute(text, parameters).fetchall()

    def create_jobs(self, *bodies: Mapping[str, Any]) -> list[str]:
        """Create jobs through the service function; their ids.

        What has such a name already is of a try that failed, and gets another: the next try may succeed.
        """
        ids: list[str] = self.console.run(_CREATE, bodies=bodies)
        return ids

    def executions(self, *job_ids: str) -> list[dict[str, Any]]:
        return self.query(
            "SELECT * FROM executions_execution WHERE job_id = ANY(%s::uuid[]) ORDER BY id", list(job_ids)
        )

    def events(self, execution_id: Any) -> list[dict[str, Any]]:
        return self.query(
            "SELECT * FROM executions_executionevent WHERE execution_id = %s ORDER BY at, attempt",
            execution_id,
        )

    def wait_for(self, condition: Callable[[], Any], what: str, timeout_s: float = 60.0) -> Any:
        """Wait until ``condition`` gives something true, and return it."""
        deadline = monotonic() + timeout_s
        while monotonic() < deadline:
            if found := condition():
                return found
            time.sleep(0.05)
        raise AssertionError(f"not within {timeout_s} s: {what}\n{self.tails()}")

    def wait_until_ready(self) -> None:
        """Every started process says that it is up; one that ended before fails at once."""
        self.wait_for(lambda: not [p for p in self.processes if not p.up], "all processes are up", PATIENCE_S)

    def wait_all_terminal(
        self, job_ids: list[str], count: int, timeout_s: float = PATIENCE_S
    ) -> list[dict[str, Any]]:
        def ended() -> bool:
            (found,) = self.query(
                "SELECT count(*) AS runs, count(finished_at) AS terminal FROM executions_execution"
                " WHERE job_id = ANY(%s::uuid[])",
                job_ids,
            )
            return bool(found["runs"] == found["terminal"] >= count)

        self.wait_for(ended, f"{count} runs are terminal", timeout_s)
        return self.executions(*job_ids)

    def run_in_time(self, bodies: Callable[[str], list[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Run the jobs that ``bodies`` gives for a round's name; the runs, in the order of the jobs.

        All of them began within a second of their due times. Something else on the machine may
        spoil a round; it does not spoil three.
        """
        late = []
        for name in ("first", "second", "third"):
            jobs = self.create_jobs(*bodies(name))
            rows = sorted(
                self.wait_all_terminal(jobs, len(jobs)), key=lambda row: jobs.index(str(row["job_id"]))
            )
            late.append(max(row["started_at"] - row["scheduled_for"] for row in rows))
            if late[-1] < timedelta(seconds=1):
                return rows
        raise AssertionError(f"too late: {', '.join(map(str, late))}\n{self.tails()}")

    def tails(self) -> str:
        return "\n".join(process.tail() for process in self.processes)


_CREATE = """
from django.contrib.auth.models import User
from django.db import transaction
from jobs.definitions import read_definition
from jobs.models import Job
from jobs.services import create_job
from scheduler_project.kernel.clock import utcnow
user, _ = User.objects.get_or_create(username="tests", defaults={"is_superuser": True})
for job in Job.objects.filter(name__in=[body["name"] for body in bodies]):
    Job.objects.filter(id=job.id).update(name=f"{job.name} {job.id.hex[-6:]}")
with transaction.atomic():
    result = [str(create_job(read_definition(body), user, utcnow()).job.id) for body in bodies]
"""


@cache
def migrated_database() -> str:
    """The name of a database with all tables and no rows, made once in a session, to be copied."""
    name = unique_name()
    migrate(keep(database(name)))
    return name


def migrate(url: str) -> None:
    own = {**os.environ, "DATABASE_URL": url}
    command = [sys.executable, "manage.py", "migrate", "--verbosity", "0"]
    subprocess.run(command, cwd=ROOT, env=own, stdin=subprocess.DEVNULL, timeout=120, check=True)


@contextmanager
def running_system(home: Path, broker: str = "rabbitmq", **env: str) -> Iterator[System]:
    """A migrated system with nothing started. ``broker``: rabbitmq or redis."""
    with own_services(migrated_database()) as places:
        of_redis = replace(places, broker_url=places.redis_url)
        with system_at(home, of_redis if broker == "redis" else places, **env) as system:
            yield system


@contextmanager
def system_at(home: Path, places: Services, **env: str) -> Iterator[System]:
    """A system with nothing started, in places whose database is migrated."""
    own = {
        **os.environ,
        **places.as_environment(),
        "PUNCTUAL_HOME": str(home),
        "PUNCTUAL_RUNTIME": "process",
        "PUNCTUAL_PROCESS_PATH": f"{BIN}:/usr/local/bin:/usr/bin:/bin",
        "PUNCTUAL_PROCESS_WORKDIR": str(home),
        "PUNCTUAL_NAMESPACE": "punctual",
        "SECRET_KEY": "for the tests only",
        **env,
    }
    system = System(own, home)
    try:
        yield system
    finally:
        system.close()
