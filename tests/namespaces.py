"""A host of its own for one process: a network namespace with a wire to each server, and wires can be pulled.

    process in the namespace ── veth ── address on this host, where a proxy listens ── server on 127.0.0.1

Each server has a wire (a veth pair) of its own. A pulled one is what a pulled cable is: no RST, no FIN;
what is sent is gone, connects hang. It needs root and ``ip``; the addresses are of 198.18.0.0/15, which is
set aside for measuring networks (RFC 2544).
"""

from __future__ import annotations

import secrets
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from datetime import timedelta

from scheduler_project.kernel.clock import utcnow
from tests.services import is_leftover, unique_name

LEFT_AFTER = timedelta(hours=1)


@dataclass(frozen=True)
class Wire:
    """``here``: the end of it that is this host's, an interface; ``address``: of that end."""

    here: str
    address: str

    def pull(self) -> None:
        _ip("link", "set", self.here, "down")

    def plug(self) -> None:
        _ip("link", "set", self.here, "up")


@dataclass
class Namespace:
    name: str
    wires: dict[str, Wire] = field(default_factory=dict)

    @property
    def prefix(self) -> Sequence[str]:
        """The words that start a command in it."""
        return ("ip", "netns", "exec", self.name)

    @contextmanager
    def without(self, to: str) -> Iterator[None]:
        """Its wire to that server is pulled meanwhile."""
        self.wires[to].pull()
        try:
            yield
        finally:
            self.wires[to].plug()


@contextmanager
def namespace(servers: Iterable[str]) -> Iterator[Namespace]:
    """A new one with a wire for each of ``servers``; with it they go."""
    _sweep()
    made = Namespace(unique_name())
    with ExitStack() as stack:
        _ip("netns", "add", made.name)
        stack.callback(_ip, "netns", "delete", made.name)
        _ip("-n", made.name, "link", "set", "lo", "up")
        for server in servers:
            made.wires[server] = _wire(made.name, stack)
        yield made


def _wire(into: str, stack: ExitStack) -> Wire:
    here, there = (f"pu{secrets.token_hex(5)}{end}" for end in "ht")
    net = f"198.{18 + secrets.randbelow(2)}.{secrets.randbelow(256)}"
    place = 4 * secrets.randbelow(64)
    _ip("link", "add", here, "type", "veth", "peer", "name", there, "netns", into)
    stack.callback(_ip, "link", "delete", here)
    _ip("address", "add", f"{net}.{place + 1}/30", "dev", here)
    _ip("-n", into, "address", "add", f"{net}.{place + 2}/30", "dev", there)
    _ip("-n", into, "link", "set", there, "up")
    _ip("link", "set", here, "up")
    return Wire(here, f"{net}.{place + 1}")


def _sweep() -> None:
    """What killed sessions have left."""
    for line in _ip("netns", "list").splitlines():
        name = line.split()[0]
        if is_leftover(name, LEFT_AFTER, utcnow()):
            with suppress(AssertionError):  # another session was faster
                _ip("netns", "delete", name)


def _ip(*words: str) -> str:
    done = subprocess.run(["ip", *words], capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, (
        f"ip {' '.join(words)}: {done.stderr} (the fault tests need root and iproute2)"
    )
    return done.stdout
