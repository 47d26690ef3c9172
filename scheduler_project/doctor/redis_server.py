"""Redis: reachable, of a version that will do, throws nothing away, has memory left, keeps its data."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from django.conf import settings

from executions.bus.topology import may_lose_deliveries
from executions.store import Store, StoreUnavailable, default_store
from scheduler_project.doctor.findings import Finding, away, failure, ok, warning

LEAST_VERSION = 7
FULL, NEARLY_FULL = 0.95, 0.80
POLICY = "noeviction"
MIB = 2**20


def check_redis(opened: Callable[[], Store] = default_store) -> Iterator[Finding]:
    """``opened``: the one to look at."""
    try:
        servers = opened().servers()
    except StoreUnavailable as error:
        yield away(
            error.message,
            "Start Redis, or set REDIS_URL to where it is; nothing is sent or claimed meanwhile, and"
            " nothing is lost: the window is loaded again.",
        )
        return
    for name, facts in servers.items():
        for finding in on_facts(facts):
            yield replace(finding, said=f"{name}: {finding.said}") if name else finding


def on_facts(facts: Mapping[str, Any]) -> Iterator[Finding]:
    """``facts``: what INFO answers."""
    version = str(facts.get("valkey_version") or facts["redis_version"])
    name = "Valkey" if "valkey_version" in facts else "Redis"
    if int(version.partition(".")[0]) < LEAST_VERSION:
        yield failure("version", f"{name} {version}.", f"Upgrade it: {LEAST_VERSION} is the least.")
    else:
        yield ok("version", f"{name} {version}.")
    if facts.get("role") != "master":
        yield failure("writable", "It is a replica.", "Let REDIS_URL name the primary.")
    else:
        yield ok("writable", "It takes writes.")
    yield from _on_eviction(facts)
    yield from _on_memory(facts)
    yield from _on_persistence(facts)


def _on_eviction(facts: Mapping[str, Any]) -> Iterator[Finding]:
    policy = str(facts.get("maxmemory_policy", ""))
    if policy == POLICY:
        yield ok("eviction", "It throws nothing away (maxmemory-policy noeviction).")
        return
    told = f"maxmemory-policy is {policy}: where memory is short it throws runs, claims and messages away."
    todo = f"CONFIG SET maxmemory-policy {POLICY}, and the same in its configuration file."
    limited = int(facts.get("maxmemory", 0)) > 0
    yield failure("eviction", told, todo) if limited else warning("eviction", told, todo)


def _on_memory(facts: Mapping[str, Any]) -> Iterator[Finding]:
    used, most = int(facts["used_memory"]), int(facts.get("maxmemory", 0))
    limit, of = (
        (most, "maxmemory") if most else (int(facts.get("total_system_memory", 0)), "its host's memory")
    )
    told = f"{used / MIB:.0f} MiB of {limit / MIB:.0f} MiB ({of})."
    todo = (
        "Raise maxmemory, or lower PUNCTUAL_WINDOW and PUNCTUAL_LOG_LIVE_BYTES; a full Redis takes no runs."
    )
    if limit and used > FULL * limit:
        yield failure("memory", told, todo)
    elif limit and used > NEARLY_FULL * limit:
        yield warning("memory", told, todo)
    else:
        yield ok("memory", told)


def _on_persistence(facts: Mapping[str, Any]) -> Iterator[Finding]:
    if facts.get("loading") not in (0, "0", None):
        yield warning("persistence", "It is loading its data.", "Wait: it answers when it has.")
        return
    if facts.get("rdb_last_bgsave_status", "ok") != "ok" or facts.get("aof_last_write_status", "ok") != "ok":
        told = "Its last write to disk has failed."
        yield failure(
            "persistence", told, "Look at its disk and its log: it may refuse writes until it is mended."
        )
    elif facts.get("aof_enabled") in (1, "1"):
        yield ok("persistence", "It appends to a file (AOF).")
    elif may_lose_deliveries(settings.BROKER_URL):
        told = "It is the broker too, and a restart loses messages (no AOF)."
        yield warning(
            "persistence", told, "CONFIG SET appendonly yes, and the same in its configuration file."
        )
    else:
        yield ok(
            "persistence",
            "No AOF: after a restart the window is loaded again, claims since the last are lost.",
        )
