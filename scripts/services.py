"""Finds the services that the tests use; on Debian as root installs and starts the missing ones.

    python -m scripts.services

1. Ask each service, where its environment variable says or on its usual local port.
2. One that an environment variable names and that does not answer is not ours to start: say so, fail.
3. One that is missing: on Debian as root install its packages, start it and wait until it answers;
   elsewhere say what is missing and how to get it, fail.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from scheduler_project.places.virtual_hosts import virtual_hosts_of
from scripts import debian
from scripts.debian import say
from tests import services as found

PATIENCE_S = 60.0
SSHD = Path("/usr/sbin/sshd")
FONT = Path("/usr/share/fonts/truetype/dejavu/DejaVuSans.ttf")


@dataclass(frozen=True)
class Service:
    """Something the tests need; ``ask`` raises where it does not answer."""

    name: str
    variable: str
    address: Callable[[], str]
    ask: Callable[[], None]
    packages: tuple[str, ...]
    start: Callable[[], None]

    def trouble(self) -> str:
        """Why it cannot be used, in one line; empty where it answers."""
        try:
            self.ask()
        except Exception as error:  # each driver has a root error of its own, and all of them mean "no"
            return without_password(" ".join(str(error).split())) or type(error).__name__
        return ""

    def place(self) -> str:
        return without_password(self.address())


def without_password(text: str) -> str:
    return re.sub(r"(://[^:/@\s]*):[^@/\s]*@", r"\1:…@", text)


def ask_busybox() -> None:
    """The tests' container images are made of this one program, so it must need no library."""
    path = shutil.which("busybox")
    if path is None or b"/ld-linux" in Path(path).read_bytes():
        raise FileNotFoundError("no statically linked busybox on PATH")


def ask_sshd() -> None:
    """The tests start one of their own, before the engine."""
    if not SSHD.exists():
        raise FileNotFoundError(f"no {SSHD}")


def ask_compiler() -> None:
    """The tests build a library by which a single process has a clock that is wrong."""
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder) / "a.c"
        source.write_text("#include <time.h>\n")
        subprocess.run(["cc", "-c", "-o", Path(folder) / "a.o", source], check=True, capture_output=True)


def ask_chromium() -> None:
    """The tests drive it without a screen; without a font its pages have no text."""
    if shutil.which("chromium") is None:
        raise FileNotFoundError("no chromium on PATH")
    if not FONT.exists():
        raise FileNotFoundError(f"no {FONT}")


SERVICES = (
    Service(
        "PostgreSQL",
        "DATABASE_URL",
        found.postgres_url,
        found.ask_postgres,
        ("postgresql",),
        debian.start_postgresql,
    ),
    Service("Redis", "REDIS_URL", found.redis_url, found.ask_redis, ("redis-server",), debian.start_redis),
    Service(
        "RabbitMQ",
        "BROKER_URL",
        found.broker_url,
        found.ask_rabbitmq,
        ("rabbitmq-server",),
        debian.start_rabbitmq,
    ),
    Service(
        "Docker",
        "DOCKER_HOST",
        found.docker_host,
        found.ask_docker,
        ("docker.io", "iptables", "iproute2"),
        debian.start_docker,
    ),
    Service(
        "busybox",
        "",
        lambda: shutil.which("busybox") or "PATH",
        ask_busybox,
        ("busybox-static",),
        lambda: None,
    ),
    Service("OpenSSH server", "", lambda: str(SSHD), ask_sshd, ("openssh-server",), lambda: None),
    Service(
        "C compiler",
        "",
        lambda: shutil.which("cc") or "PATH",
        ask_compiler,
        ("gcc", "libc6-dev"),
        lambda: None,
    ),
    Service(
        "Chromium",
        "",
        lambda: shutil.which("chromium") or "PATH",
        ask_chromium,
        ("chromium", "fonts-dejavu-core"),
        lambda: None,
    ),
)


def main() -> int:
    missing = look()
    if not missing:
        return check_virtual_hosts()
    refusals = named_by_environment(missing, os.environ) or (
        [] if debian.available() else how_to_get(missing)
    )
    if refusals:
        return fail(refusals)
    try:
        bring(missing)
    except debian.CommandFailed as error:
        return fail([str(error)])
    troubles = wait_for(missing)
    return fail(troubles) if troubles else check_virtual_hosts()


def look() -> dict[Service, str]:
    """The services that do not answer, each with the reason; says where the others are."""
    missing = {}
    for service in SERVICES:
        trouble = service.trouble()
        if trouble:
            missing[service] = trouble
        else:
            say(f"{service.name}: {service.place()}")
    return missing


def named_by_environment(missing: Mapping[Service, str], env: Mapping[str, str]) -> list[str]:
    return [
        f"{service.name} does not answer at {service.place()}, where {service.variable} says it is: {trouble}"
        for service, trouble in missing.items()
        if env.get(service.variable)
    ]


def how_to_get(missing: Mapping[Service, str]) -> list[str]:
    lines = [
        f"{service.name} is missing or out of reach ({service.place()}): {trouble}"
        for service, trouble in missing.items()
    ]
    packages = " ".join(package for service in missing for package in service.packages)
    variables = ", ".join(service.variable for service in missing if service.variable)
    lines.append(f"On Debian as root `make services` installs and starts them; the packages are: {packages}")
    if variables:
        lines.append(f"If they run elsewhere, say where in {variables}")
    return lines


def bring(missing: Mapping[Service, str]) -> None:
    debian.install([package for service in missing for package in service.packages])
    for service in missing:
        if service.trouble():
            say(f"Starting {service.name}")
            service.start()


def wait_for(services: Mapping[Service, str]) -> list[str]:
    """Wait until each answers; one line for each that does not within a minute."""
    troubles = []
    for service in services:
        if debian.wait_until(lambda asked=service: not asked.trouble(), PATIENCE_S):  # type: ignore[misc]
            say(f"{service.name}: {service.place()} (started now)")
        else:
            troubles.append(f"{service.name} does not answer at {service.place()}: {service.trouble()}")
    return troubles


def check_virtual_hosts() -> int:
    """Each test session needs a virtual host of its own; better said here once than by every test."""
    try:
        virtual_hosts_of(found.broker_url())
    except RuntimeError as error:
        return fail([f"RabbitMQ: {error}"])
    return 0


def fail(lines: Sequence[str]) -> int:
    for line in lines:
        print(f"error: {line}", file=sys.stderr, flush=True)
    return 1


if __name__ == "__main__":
    sys.exit(main())
