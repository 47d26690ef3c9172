"""Which parts are embedded, which are given, and the environment that each process gets."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from pathlib import Path

from scheduler_project.standalone.options import Options
from scheduler_project.standalone.postgres import Postgres
from scheduler_project.standalone.valkey import Valkey

NO_DATABASE = "postgresql://nobody@127.0.0.1:1/nowhere"


class Parts:
    """``given`` is what was set for this start. Parts whose address is not given are embedded."""

    def __init__(self, options: Options, given: Mapping[str, str], log: Path) -> None:
        self._options = options
        self._given = given
        self.postgres: Postgres | None = None
        self.valkey: Valkey | None = None
        if "DATABASE_URL" not in given or (options.demo and "WAREHOUSE_URL" not in given):
            self.postgres = Postgres(options.folder, log / f"{Postgres.name}.log")
        if "REDIS_URL" not in given or "BROKER_URL" not in given:
            self.valkey = Valkey(options.folder, log / f"{Valkey.name}.log")

    @property
    def databases(self) -> list[str]:
        """The databases that the embedded PostgreSQL has to have."""
        if self.postgres is None:
            return []
        wanted = {"punctual": "DATABASE_URL" not in self._given, "warehouse": self._wants_warehouse}
        return [name for name, is_wanted in wanted.items() if is_wanted]

    @property
    def _wants_warehouse(self) -> bool:
        return self._options.demo and "WAREHOUSE_URL" not in self._given

    def addresses(self, runtime: str) -> dict[str, str]:
        """The variables that every Django process of this home needs, also those on another terminal."""
        found = {"PUNCTUAL_RUNTIME": runtime}
        if self.postgres:
            found["DATABASE_URL"] = self.postgres.url("punctual", "punctual")
        if self.valkey:
            found |= {"REDIS_URL": self.valkey.redis_url, "BROKER_URL": self.valkey.broker_url}
        for name in ("DATABASE_URL", "REDIS_URL", "BROKER_URL"):
            found[name] = self._given.get(name, found.get(name, ""))
        return found

    def environment(self, runtime: str) -> dict[str, str]:
        """Of every process but the worker."""
        env = {**os.environ, **self._given, **self.addresses(runtime)}
        env |= {"PUNCTUAL_HOME": self._options.home, "PUNCTUAL_PORT": str(self._options.port)}
        env.setdefault("DJANGO_SETTINGS_MODULE", "scheduler_project.settings")
        # kombu's Redis transport may lose a delivery with the process that has it in hand: look again soon.
        env.setdefault("PUNCTUAL_ENQUEUE_TIMEOUT", "1m")
        if "ALLOWED_HOSTS" in self._given:
            env["ALLOWED_HOSTS"] = self._given["ALLOWED_HOSTS"] + ",127.0.0.1,localhost"
        return env

    def worker_environment(self, runtime: str) -> dict[str, str]:
        """Of the worker: no database; in the demo, where its commands live and what they write to."""
        env = {**self.environment(runtime), "DATABASE_URL": NO_DATABASE}
        if not self._options.demo:
            return env
        if self._wants_warehouse and self.postgres:
            env["WAREHOUSE_URL"] = self.postgres.url("warehouse", "warehouse")
        handed_on = [name for name in self._given.get("PUNCTUAL_RUN_ENV", "").split(",") if name.strip()]
        env["PUNCTUAL_RUN_ENV"] = ",".join(dict.fromkeys([*handed_on, "WAREHOUSE_URL"]))
        folders = [str(Path(sys.executable).parent), *os.environ.get("PATH", os.defpath).split(":")]
        env.setdefault("PUNCTUAL_PROCESS_PATH", ":".join(name for name in folders if name.startswith("/")))
        env.setdefault("PUNCTUAL_PROCESS_WORKDIR", str(self._options.examples))
        return env
