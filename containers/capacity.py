"""What an engine has for its containers together."""

from __future__ import annotations

import os
from dataclasses import dataclass

MEBIBYTE = 1 << 20


@dataclass(frozen=True, slots=True)
class Capacity:
    """``cpus``: in CPUs. None: as much as may be asked for."""

    cpus: float | None = None
    memory_bytes: int | None = None

    def __str__(self) -> str:
        cpus = "any number of CPUs" if self.cpus is None else f"{self.cpus:g} CPUs"
        memory = "any memory" if self.memory_bytes is None else f"{self.memory_bytes // MEBIBYTE} MiB"
        return f"{cpus} and {memory}"


def host_capacity() -> Capacity:
    """Of the machine that this process is on."""
    pages = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    return Capacity(float(os.cpu_count() or 1), pages)
