"""A whole system in places of its own, that reaches its servers through proxies.

Nothing of the system that the settings name is touched: of DATABASE_URL, REDIS_URL and BROKER_URL only the
servers are taken. There a database, a virtual host (over RabbitMQ) and a namespace are made, and removed at
the end however it comes.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp

import psycopg

from executions.store import Store
from scheduler_project.chaos.plan import EACH, KINDS
from scheduler_project.chaos.proxies import Proxy, proxy_before
from scheduler_project.env import given_variables
from scheduler_project.kernel.clock import monotonic, utcnow
from scheduler_project.kernel.errors import PunctualError, RetryableError
from scheduler_project.places import leash, servers
from scheduler_project.places.processes import ROOT, EndedEarly, Process, command_of, environment_of

PREFIX = "punctual_chaos_"
OWN = {
    "PUNCTUAL_RUNTIME": "process",
    "PUNCTUAL_ENQUEUE_TIMEOUT": "1m",  # what a broker loses is found before one's patience ends
    "PUNCTUAL_LOG_LIVE_BYTES": "0",  # nobody follows
    "PUNCTUAL_CATCHUP_ACTIVE": "16",
    "SECRET_KEY": "for chaos only",
    "PYTHONDONTWRITEBYTECODE": "",
}
UP_WITHIN_S = 120.0
GONE_WITHIN_S = 10.0


class NoPlace(PunctualError):
    """A place of its own cannot be made."""


@dataclass(frozen=True, slots=True)
class Places:
    """``home``: a folder. ``database``: the address without a proxy, for looking from outside."""

    home: Path
    database: str
    redis: str
    broker: str
    namespace: str


@dataclass(slots=True)
class ChaosSystem:
    places: Places
    proxies: Mapping[str, Proxy]
    env: Mapping[str, str]
    processes: dict[str, Process] = field(default_factory=dict)

    def start_all(self) -> None:
        for kind in KINDS:
            for number in range(EACH):
                self.start(f"{kind}{number + 1}")

    def start(self, name: str) -> None:
        """Start the process of that name, of which none is alive."""
        kind = name.rstrip("0123456789")
        command = [sys.executable, "-S", leash.__file__, str(os.getpid()), *command_of(name)]
        log = self.places.home / f"{name}.log"
        self.processes[name] = Process(name, command, environment_of(kind, self.env), log)

    def logs(self, kind: str) -> Iterator[str]:
        """What the processes of that kind have written."""
        return (process.text() for process in self.processes.values() if process.kind == kind)

    def wait_until_up(self) -> None:
        deadline = monotonic() + UP_WITHIN_S
        while late := [process for process in self.processes.values() if not process.up]:
            if monotonic() > deadline:
                raise EndedEarly(f"not up within {UP_WITHIN_S:g} s:\n{late[0].tail()}")
            time.sleep(0.1)

    def manage(self, *words: str, ends_with: int = 0) -> None:
        """A management command, to its end. PunctualError, with what it said, where it ends with another."""
        done = subprocess.run(
            [sys.executable, "manage.py", *words],
            cwd=ROOT,
            env=dict(self.env),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode != ends_with:
            raise PunctualError(f"manage.py {words[0]} ended with {done.returncode}: {done.stderr[-2000:]}")

    def apply_jobs(self, bodies: list[dict[str, object]], *, dry_run: bool = False) -> None:
        file = self.places.home / "jobs.yaml"
        file.write_text(json.dumps(bodies))  # which is YAML, too
        if dry_run:
            self.manage("apply_jobs", str(file), "--dry-run", ends_with=2)  # there is something to do
        else:
            self.manage("apply_jobs", str(file))

    def end(self) -> None:
        """kill -9 of all that it started; what those ran ends by itself within seconds."""
        for process in self.processes.values():
            if process.alive:
                process.signal(signal.SIGCONT)
                process.kill()
        for proxy in self.proxies.values():
            proxy.close()


def usual_broker() -> str:
    """Which of the two BROKER_URL names."""
    return "redis" if servers.broker_url(_given()).startswith("redis") else "rabbitmq"


def _given() -> dict[str, str]:
    return given_variables(ROOT / ".env", os.environ)


@contextmanager
def chaos_system(broker: str, *, keep: bool = False) -> Iterator[ChaosSystem]:
    """Migrated, with nothing started. ``broker``: rabbitmq or redis. ``keep``: its folder stays.

    NoPlace, with what to do about it.
    """
    with ExitStack() as stack:
        home = Path(mkdtemp(prefix=PREFIX))
        if not keep:
            stack.callback(_remove, home)
        places = _take_places(stack, broker, home)
        proxies, env = _through_proxies(places)
        system = ChaosSystem(places, proxies, env)
        stack.callback(system.end)
        system.manage("migrate", "--verbosity", "0")
        yield system


def _take_places(stack: ExitStack, broker: str, home: Path) -> Places:
    name = servers.unique_name(PREFIX)
    given = _given()
    postgres, redis = servers.postgres_url(given), servers.redis_url(given)
    rabbitmq = servers.broker_url(given) if broker == "rabbitmq" else ""
    with _made("BROKER_URL"):
        _check_is_rabbitmq(rabbitmq)
        servers.sweep(PREFIX, servers.LEFT_AFTER, utcnow(), postgres, rabbitmq)
        own_broker = stack.enter_context(servers.virtual_host(name, rabbitmq)) if rabbitmq else redis
    with _made("DATABASE_URL"):
        database = stack.enter_context(servers.database(name, postgres))
    store = Store(redis, name)
    with _made("REDIS_URL"):
        store.now_ms()
    stack.callback(store.delete_namespace)
    return Places(home, database, redis, own_broker, name)


def _check_is_rabbitmq(url: str) -> None:
    if url and not url.startswith(("pyamqp://", "amqps://")):
        raise RuntimeError("it is no RabbitMQ. Say --broker redis, or give the address of one")


@contextmanager
def _made(variable: str) -> Iterator[None]:
    """What goes wrong in the making is said with the variable that names the server."""
    try:
        yield
    except psycopg.errors.InsufficientPrivilege as error:
        todo = "chaos makes a database of its own: name a role that may (ALTER ROLE … CREATEDB)"
        raise NoPlace(f"DATABASE_URL: {error.diag.message_primary}; {todo}") from error
    except psycopg.Error as error:
        raise NoPlace(f"DATABASE_URL: no database of its own can be made: {error}") from error
    except (RuntimeError, RetryableError, OSError) as error:
        raise NoPlace(f"{variable}: {error}") from error


def _through_proxies(places: Places) -> tuple[dict[str, Proxy], dict[str, str]]:
    postgres, database_url = proxy_before(places.database, 5432)
    redis, redis_url = proxy_before(places.redis, 6379)
    proxies, broker_url = {"PostgreSQL": postgres, "Redis": redis}, redis_url
    if places.broker == places.redis:
        proxies["broker"] = redis
    else:
        proxies["broker"], broker_url = proxy_before(places.broker, 5672)
    ours = {
        "DATABASE_URL": database_url,
        "REDIS_URL": redis_url,
        "BROKER_URL": broker_url,
        "PUNCTUAL_HOME": str(places.home),
        "PUNCTUAL_NAMESPACE": places.namespace,
        **OWN,
    }
    return proxies, {**_inherited(), **ours}


def _inherited() -> dict[str, str]:
    """This process's environment, with each setting of Punctual blank, so that no .env fills it in."""
    given = _given()
    return {**os.environ, **{name: "" for name in given if name.startswith("PUNCTUAL_")}}


def _remove(home: Path) -> None:
    """With all that is in it; the last runs may be writing yet."""
    deadline = monotonic() + GONE_WITHIN_S
    while home.exists() and monotonic() < deadline:
        shutil.rmtree(home, ignore_errors=True)
        time.sleep(0.05)
