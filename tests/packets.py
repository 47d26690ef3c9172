"""Packets that are swallowed: what is sent to a port of this host is dropped, without an answer.

A proxy's own port is a process's only way to a server: to drop what goes there and comes from there cuts that
process off as a pulled cable would: no RST, no FIN, connects that hang. Needs root and iptables.
"""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def swallowed(*ports: int) -> Iterator[None]:
    """Drop all TCP packets to and from these ports on the loopback interface, meanwhile."""
    rules = [rule for port in ports for rule in _rules(port)]
    done: list[list[str]] = []
    try:
        for rule in rules:
            _iptables("-I", rule)
            done.append(rule)
        yield
    finally:
        for rule in done:
            _iptables("-D", rule)


def _rules(port: int) -> list[list[str]]:
    return [
        ["INPUT", "-i", "lo", "-p", "tcp", f"--{end}", str(port), "-j", "DROP"] for end in ("dport", "sport")
    ]


def _iptables(how: str, rule: list[str]) -> None:
    command = ["iptables", "-w", "10", how, *rule]
    done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    assert done.returncode == 0, (
        f"{' '.join(command)}: {done.stderr} (the fault tests need root and iptables)"
    )
