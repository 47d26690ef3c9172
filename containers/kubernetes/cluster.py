"""The connection to a cluster's API server, and what its errors mean for us.

Answers are read as the JSON that they are: the client's models cost a hundred times as much and
know less than the API (``sinceTime`` of a log is not in them).
"""

from __future__ import annotations

import json
import os
import socket
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import datetime
from http import HTTPStatus
from pathlib import Path
from typing import Any

import urllib3
from kubernetes.client import ApiClient, ApiException, Configuration
from kubernetes.config import ConfigException, load_incluster_config, load_kube_config
from urllib3.exceptions import HTTPError

from containers.clocks import ServerClock
from containers.kubernetes.options import KubernetesOptions
from containers.outcome import one_line
from containers.runtime import RuntimeUnavailable
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import PermanentError

DEFAULT_KUBECONFIG = "~/.kube/config"
CONNECT_WITHIN_S = 10.0
POOL_SIZE = 256
# What an API server or a proxy before it says of itself, not of the request.
ITS_OWN_FAULT = frozenset({HTTPStatus.TOO_MANY_REQUESTS, HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.UNAUTHORIZED})
PIECE = 64 * 1024
# A connection that died without a word is told within 25 s; load balancers forget silent ones in minutes.
_TCP = {
    "TCP_NODELAY": 1,
    "TCP_KEEPIDLE": 10,
    "TCP_KEEPINTVL": 5,
    "TCP_KEEPCNT": 3,
    "TCP_USER_TIMEOUT": 25_000,
}
KEEPALIVE = [
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    *(
        (socket.IPPROTO_TCP, getattr(socket, name), value)
        for name, value in _TCP.items()
        if hasattr(socket, name)
    ),
]


class Refused(PermanentError):
    """The API server understood a request and does not do it; ``reason`` is its one-word reason."""

    def __init__(self, status: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason


class Cluster:
    """Connects on first use, so that a worker can start before its cluster answers."""

    def __init__(self, options: KubernetesOptions) -> None:
        self.options = options
        self._client: ApiClient | None = None
        self._lock = threading.Lock()
        self._clock = ServerClock()

    def now(self) -> datetime:
        """The time by the cluster's clock, as well as it is known."""
        return self._clock.now()

    def get(self, path: str, **query: Any) -> dict[str, Any]:
        """GET, as JSON. Raises Refused or RuntimeUnavailable; so do all calls here."""
        return self._json("GET", path, query, None)

    def find(self, path: str, **query: Any) -> dict[str, Any] | None:
        """As ``get``; None where there is no such thing."""
        try:
            return self.get(path, **query)
        except Refused as refusal:
            if refusal.status == HTTPStatus.NOT_FOUND:
                return None
            raise

    def create(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        return self._json("POST", path, {}, body)

    def patch(self, path: str, body: Mapping[str, Any]) -> dict[str, Any]:
        """A strategic merge patch."""
        return self._json("PATCH", path, {}, body)

    def delete(self, path: str, body: Mapping[str, Any]) -> None:
        """No error where it is gone already."""
        try:
            self._json("DELETE", path, {}, body)
        except Refused as refusal:
            if refusal.status != HTTPStatus.NOT_FOUND:
                raise

    def pages(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """A list in pages, which are all of the first one's version."""
        more = ""
        while True:
            further = {"continue": more} if more else {}
            page = self.get(path, limit=self.options.page, **query, **further)
            yield page
            more = page["metadata"].get("continue") or ""
            if not more:
                return

    def items(self, path: str, **query: Any) -> Iterator[dict[str, Any]]:
        """All of a list."""
        for page in self.pages(path, **query):
            yield from page.get("items") or ()

    def stream(self, path: str, silence_s: float, **query: Any) -> Stream:
        """An answer that goes on; it is ended by ``silence_s`` without a byte."""
        with self._answering():
            return Stream(self._request("GET", path, query, None, silence_s))

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.rest_client.pool_manager.clear()
                self._client.close()
                self._client = None

    def _json(
        self, method: str, path: str, query: Mapping[str, Any], body: Mapping[str, Any] | None
    ) -> dict[str, Any]:
        with self._answering():
            asked_at = utcnow()
            response = self._request(method, path, query, body, self.options.api_timeout_s)
            self._clock.learn(response.headers.get("Date", ""), asked_at)
            try:
                return dict(json.loads(response.data))
            except ValueError as error:
                raise RuntimeUnavailable(f"the cluster's answer to {method} {path} is not JSON") from error

    def _request(
        self,
        method: str,
        path: str,
        query: Mapping[str, Any],
        body: Mapping[str, Any] | None,
        timeout_s: float,
    ) -> urllib3.BaseHTTPResponse:
        headers = {"Accept": "application/json"}
        if body is not None:
            headers["Content-Type"] = (
                "application/strategic-merge-patch+json" if method == "PATCH" else "application/json"
            )
        response: urllib3.BaseHTTPResponse = self._connected().call_api(
            path,
            method,
            query_params=[(name, _parameter(value)) for name, value in query.items()],
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
            _preload_content=False,
            _request_timeout=(CONNECT_WITHIN_S, timeout_s),
        )
        return response

    def _connected(self) -> ApiClient:
        with self._lock:
            if self._client is None:
                self._client = ApiClient(_configuration(self.options))
            return self._client

    @contextmanager
    def _answering(self) -> Iterator[None]:
        try:
            yield
        except ApiException as error:
            raise self._meaning(error) from None
        except ConfigException as error:
            raise RuntimeUnavailable(
                f"no cluster is configured: {one_line(str(error), 200)}; set KUBECONFIG,"
                " or run the worker in a pod with a service account"
            ) from error
        except (HTTPError, OSError, AttributeError) as error:
            # AttributeError: the client trips over its own exception for an error of TLS, which has no body.
            raise RuntimeUnavailable(
                f"no Kubernetes API server answers at {self._address()}: {one_line(str(error), 200)}"
            ) from error

    def _meaning(self, error: ApiException) -> Exception:
        refusal, address = _refusal(error), self._address()
        if refusal.status == HTTPStatus.UNAUTHORIZED:
            self._forget_client()
        if refusal.status in ITS_OWN_FAULT or not 400 <= refusal.status < 500:
            return RuntimeUnavailable(f"the cluster at {address} failed: {refusal.status} {refusal.message}")
        return refusal

    def _forget_client(self) -> None:
        """Its credentials were read once (a token's file, a program's answer) and are no good any more.

        The next request reads them anew. Others may be on their way by it: it goes when they are over.
        """
        with self._lock:
            self._client = None

    def _address(self) -> str:
        client = self._client
        return "its address" if client is None else str(client.configuration.host)


class Stream:
    """A streamed answer; another thread may ``cut`` it."""

    def __init__(self, response: urllib3.BaseHTTPResponse) -> None:
        self._response = response

    def pieces(self) -> Iterator[bytes]:
        """As they arrive. Raises RuntimeUnavailable where it breaks off or is cut."""
        try:
            yield from self._response.stream(PIECE)
        except (HTTPError, OSError, ValueError, AttributeError) as error:
            # The last two: cut while, or before, it was read.
            raise RuntimeUnavailable(f"a stream of the cluster broke off: {one_line(str(error))}") from error
        finally:
            self._response.close()

    def lines(self) -> Iterator[bytes]:
        """Whole lines, without their ends; what follows the last line end is no line."""
        rest = b""
        for piece in self.pieces():
            *lines, rest = (rest + piece).split(b"\n") if b"\n" in piece else (rest + piece,)
            yield from lines

    def cut(self) -> None:
        with suppress(Exception):  # it may be ending at this moment, in several ways
            self._response.shutdown()


def _configuration(options: KubernetesOptions) -> Configuration:
    configuration = Configuration()
    configuration.retries = False  # who calls knows better what may be asked again
    configuration.connection_pool_maxsize = POOL_SIZE
    configuration.socket_options = KEEPALIVE
    given = options.kubeconfig or os.environ.get("KUBECONFIG", "")
    if given or options.context or Path(DEFAULT_KUBECONFIG).expanduser().exists():
        load_kube_config(
            given or DEFAULT_KUBECONFIG,
            context=options.context or None,
            client_configuration=configuration,
            persist_config=False,
        )
    else:
        load_incluster_config(configuration)
    return configuration


def _parameter(value: Any) -> Any:
    return str(value).lower() if isinstance(value, bool) else value


def _refusal(error: ApiException) -> Refused:
    """From the Status object in the body, or from what a proxy says in its place."""
    text = error.body if isinstance(error.body, str) else ""
    try:
        status = json.loads(text)
        return Refused(
            int(error.status), str(status.get("reason", "")), one_line(str(status.get("message", "")))
        )
    except (ValueError, AttributeError):
        return Refused(int(error.status or 0), "", one_line(text or str(error.reason)))
