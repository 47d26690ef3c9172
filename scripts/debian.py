"""How Debian installs and starts the services: its own packages and its own ``service`` command.

Everything that is started here gets a new session, nothing on standard input, and a log file for its
output, so that it outlives the caller and keeps none of the caller's pipes open.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

LOG = Path(sys.prefix) / "services.log"
DOCKER_LOG = Path("/var/log/dockerd.log")
POLICY = Path("/usr/sbin/policy-rc.d")
SYSTEMD = Path("/run/systemd/system")
RABBITMQ_ENVIRONMENT = Path("/etc/rabbitmq/rabbitmq-env.conf")
# May make databases and nothing else; whoever can use it is on this machine already.
ROLE = """
DO $$ BEGIN
  IF NOT EXISTS (SELECT FROM pg_roles WHERE rolname = 'punctual_test') THEN
    CREATE ROLE punctual_test LOGIN CREATEDB PASSWORD 'punctual_test';
  END IF;
END $$
"""


class CommandFailed(Exception):
    """A command did not work; the text holds it and the end of its output."""


def available() -> bool:
    """Whether this is Debian (or its kin) and this process may install packages."""
    return os.geteuid() == 0 and Path("/etc/debian_version").exists() and shutil.which("apt-get") is not None


def say(text: str) -> None:
    print(text, flush=True)


# Packages


def install(packages: Sequence[str]) -> None:
    """Install those of ``packages`` that are not there yet; CommandFailed with apt's last lines."""
    wanted = [package for package in packages if not _is_installed(package)]
    if not wanted:
        return
    say(f"Installing {' '.join(wanted)} from Debian's packages (log: {LOG})")
    if "rabbitmq-server" in wanted:
        _name_the_rabbitmq_node()
    with _nothing_started_by_apt():
        run(["apt-get", "update"])
        options = ["-y", "--no-install-recommends", "-o", "Dpkg::Options::=--force-confold"]
        run(["apt-get", "install", *options, *wanted])


def _is_installed(package: str) -> bool:
    command = ["dpkg-query", "-W", "-f", "${db:Status-Status}", package]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout == "installed"


@contextmanager
def _nothing_started_by_apt() -> Iterator[None]:
    """Without systemd, packages would start their services in ways that differ; we start them afterwards."""
    if SYSTEMD.exists() or POLICY.exists():
        yield
        return
    POLICY.write_text("#!/bin/sh\nexit 101\n")
    POLICY.chmod(0o755)
    try:
        yield
    finally:
        POLICY.unlink()


def _name_the_rabbitmq_node() -> None:
    """RabbitMQ calls its node after the host and does not start where that name leads nowhere."""
    if shutil.which("getent") and works(["getent", "hosts", os.uname().nodename]):
        return
    if not RABBITMQ_ENVIRONMENT.exists():
        RABBITMQ_ENVIRONMENT.parent.mkdir(parents=True, exist_ok=True)
        RABBITMQ_ENVIRONMENT.write_text("NODENAME=rabbit@localhost\n")
        say(f"This host's name does not resolve: wrote NODENAME=rabbit@localhost to {RABBITMQ_ENVIRONMENT}")


# Starting


def start_postgresql() -> None:
    """Start it; where nobody may log in without a password, make the role ``punctual_test``."""
    run(["service", "postgresql", "start"])
    _wait_for(["pg_isready", "-q", "-h", "127.0.0.1", "-p", "5432"])
    if works(["psql", "-X", "-w", "-h", "127.0.0.1", "-U", "postgres", "-d", "postgres", "-c", "SELECT 1"]):
        return
    say("Making the PostgreSQL role punctual_test (password punctual_test; may create databases, no more)")
    as_postgres = ["runuser", "-u", "postgres", "--", "psql", "-X", "-q", "-p", "5432", "-d", "postgres"]
    run([*as_postgres, "-v", "ON_ERROR_STOP=1", "-c", ROLE])


def start_redis() -> None:
    run(["service", "redis-server", "start"])


def start_rabbitmq() -> None:
    run(["service", "rabbitmq-server", "start"])


def start_docker() -> None:
    """By systemd where it runs; otherwise the daemon itself (its init script also mounts cgroups)."""
    if SYSTEMD.exists():
        run(["service", "docker", "start"])
        return
    say(f"Starting dockerd (log: {DOCKER_LOG})")
    with DOCKER_LOG.open("ab") as log:
        subprocess.Popen(
            ["dockerd"], stdin=subprocess.DEVNULL, stdout=log, stderr=log, start_new_session=True, cwd="/"
        )


# Commands


def run(command: Sequence[str]) -> None:
    """Run it, its output at the end of LOG; CommandFailed, with the last lines, unless it ends with 0."""
    begin = LOG.stat().st_size if LOG.exists() else 0
    with LOG.open("ab") as log:
        code = _call(command, log.fileno())
    if code:
        with LOG.open("rb") as log:
            log.seek(begin)
            lines = log.read().decode(errors="replace").splitlines()[-15:]
        raise CommandFailed(f"{' '.join(command[:3])} ended with {code}:\n  " + "\n  ".join(lines))


def works(command: Sequence[str]) -> bool:
    return shutil.which(command[0]) is not None and _call(command, subprocess.DEVNULL) == 0


def _call(command: Sequence[str], output: int) -> int:
    return subprocess.run(
        command,
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        env={**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"},
        cwd="/",
        start_new_session=True,
        check=False,
    ).returncode


def _wait_for(command: Sequence[str], patience_s: float = 30.0) -> None:
    wait_until(lambda: works(command), patience_s)


def wait_until(there: Callable[[], bool], patience_s: float) -> bool:
    """Ask every quarter of a second for up to ``patience_s`` seconds; says whether it came true."""
    end = time.monotonic() + patience_s
    while not there():
        if time.monotonic() > end:
            return False
        time.sleep(0.25)
    return True
