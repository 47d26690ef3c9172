"""Virtual hosts of a RabbitMQ server: made and deleted over the management API or with ``rabbitmqctl``."""

from __future__ import annotations

import base64
import json
import os
import shutil
import subprocess
from collections.abc import Sequence
from functools import cache
from typing import Any, Protocol
from urllib.error import HTTPError, URLError
from urllib.parse import SplitResult, quote, unquote, urlsplit
from urllib.request import Request, urlopen

LOCAL = {"127.0.0.1", "localhost", "::1"}
HOW = (
    "no way to make a virtual host on {host}: the management API at {api} does not let this user in, "
    "and rabbitmqctl needs root on the server's own machine. Enable the plugin rabbitmq_management "
    "(image rabbitmq:4-management), say where it is in RABBITMQ_MANAGEMENT_URL, or run this as root"
)


class VirtualHosts(Protocol):
    def names(self) -> list[str]: ...

    def add(self, name: str) -> None:
        """Make it and let the address's user do everything in it."""

    def drop(self, name: str) -> None: ...


@cache  # each question to rabbitmqctl takes a second
def virtual_hosts_of(url: str) -> VirtualHosts:
    """The way that works on the server at ``url``; RuntimeError, with what to do, where none does."""
    parts = urlsplit("//" + url.split("://", 1)[1])
    user, password = unquote(parts.username or "guest"), unquote(parts.password or "guest")
    api = os.environ.get("RABBITMQ_MANAGEMENT_URL") or _api_of(parts)
    over_api = ManagementApi(api, user, password)
    if over_api.answers():
        return over_api
    by_command = CommandLine(user)
    if (parts.hostname or "localhost") in LOCAL and by_command.works():
        return by_command
    raise RuntimeError(HOW.format(host=parts.hostname, api=api))


def _api_of(parts: SplitResult) -> str:
    """The plugin's port is the broker's with a 1 before it: 15672 for 5672."""
    host = parts.hostname or "localhost"
    return f"http://{f'[{host}]' if ':' in host else host}:{10000 + (parts.port or 5672)}"


class ManagementApi:
    def __init__(self, url: str, user: str, password: str) -> None:
        self._url = url.rstrip("/")
        self._user = user
        token = base64.b64encode(f"{user}:{password}".encode()).decode()
        self._headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}

    def answers(self) -> bool:
        try:
            self.names()
        except (URLError, TimeoutError, ConnectionError, ValueError):  # an HTTPError is a URLError
            return False
        return True

    def names(self) -> list[str]:
        return [host["name"] for host in json.loads(self._call("GET", "vhosts"))]

    def add(self, name: str) -> None:
        self._call("PUT", f"vhosts/{quote(name, safe='')}", {"default_queue_type": "classic"})
        everything = {"configure": ".*", "write": ".*", "read": ".*"}
        self._call("PUT", f"permissions/{quote(name, safe='')}/{quote(self._user, safe='')}", everything)

    def drop(self, name: str) -> None:
        try:
            self._call("DELETE", f"vhosts/{quote(name, safe='')}")
        except HTTPError as error:
            if error.code != 404:
                raise

    def _call(self, method: str, path: str, body: Any = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        url = f"{self._url}/api/{path}"
        request = Request(url, data=data, headers=self._headers, method=method)  # noqa: S310
        with urlopen(request, timeout=10) as response:  # noqa: S310 -- the address is the operator's
            return bytes(response.read())


class CommandLine:
    """``rabbitmqctl``: needs root (or the server's own user) on the server's machine; a second a call."""

    def __init__(self, user: str) -> None:
        self._user = user

    def works(self) -> bool:
        return (
            shutil.which("rabbitmqctl") is not None
            and _run(["await_startup", "--timeout", "10"]).returncode == 0
        )

    def names(self) -> list[str]:
        return _checked(["list_vhosts", "name", "--silent"]).splitlines()

    def add(self, name: str) -> None:
        _checked(["add_vhost", name])
        _checked(["set_permissions", "-p", name, self._user, ".*", ".*", ".*"])

    def drop(self, name: str) -> None:
        result = _run(["delete_vhost", name])
        if result.returncode and name in self.names():
            raise RuntimeError(
                f"rabbitmqctl delete_vhost {name}: {result.stderr.strip() or result.stdout.strip()}"
            )


def _run(arguments: Sequence[str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["rabbitmqctl", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def _checked(arguments: Sequence[str]) -> str:
    result = _run(arguments)
    if result.returncode:
        raise RuntimeError(
            f"rabbitmqctl {' '.join(arguments)}: {result.stderr.strip() or result.stdout.strip()}"
        )
    return result.stdout
