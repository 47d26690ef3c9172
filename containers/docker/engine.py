"""The connection to a Docker engine, and what its errors mean for us."""

from __future__ import annotations

import os
import select
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, NotFound, create_api_error_from_http_exception
from docker.types import CancellableStream
from docker.utils import kwargs_from_env
from urllib3.exceptions import HTTPError

from containers.clocks import ServerClock
from containers.docker.ssh import SCHEME, Tunnel
from containers.outcome import one_line
from containers.runtime import RuntimeUnavailable
from scheduler_project.kernel.clock import utcnow

__all__ = ["APIError", "DockerOptions", "Engine", "NotFound", "cut", "explain", "patient"]

MEBIBYTE = 1024 * 1024
CONNECT_WITHIN_S = 10.0
CLOSE_WITHIN_S = 1.0
STREAM_BYTES = 256 * 1024
LOCAL_SOCKET = "unix:///var/run/docker.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerOptions:
    """``host``: the engine's address (empty: DOCKER_HOST and its companions, else the local socket).
    ``network``: for specs that name none. ``init``: a tiny first process that passes signals on and
    reaps zombies. ``tmp_bytes``: size of /tmp. ``log_file_bytes`` × ``log_files``: what the engine
    keeps of one container's output. ``pulled``: the name under which pulled images are marked (disk.py);
    they are kept for ``pulled_kept_s`` after that: a run is about to use them."""

    host: str = ""
    network: str = "bridge"
    init: bool = True
    tmp_bytes: int = 256 * MEBIBYTE
    log_file_bytes: int = 64 * MEBIBYTE
    log_files: int = 4
    api_timeout_s: int = 60
    pulled: str = "punctual-pulled"
    pulled_kept_s: float = 600.0


class _Patience(threading.local):
    """The longest that a thread waits for the engine to say something; None: as long as the client does."""

    within_s: float | None = None


_patience = _Patience()


@contextmanager
def patient(within_s: float | None) -> Iterator[None]:
    """What this thread asks of an engine meanwhile is given up when it is silent for so many seconds.

    None: as it is with whoever calls.
    """
    before = _patience.within_s
    _patience.within_s = before if within_s is None else within_s
    try:
        yield
    finally:
        _patience.within_s = before


class _Client(docker.APIClient):
    def send(self, request: Any, **kwargs: Any) -> Any:
        """As requests has it, with no more patience than the thread has; the SDK gives events any time."""
        if _patience.within_s is not None:
            kwargs["timeout"] = min(_patience.within_s, self.timeout)
        return super().send(request, **kwargs)

    def merge_environment_settings(self, url: Any, proxies: Any, stream: Any, verify: Any, cert: Any) -> Any:
        """As requests has it, but the CA in DOCKER_CERT_PATH goes before a REQUESTS_CA_BUNDLE for the web."""
        return super().merge_environment_settings(
            url, proxies, stream, self.verify if verify is None else verify, cert
        )


class Engine:
    """Connects on first use, so that a worker can start before its engine does."""

    def __init__(self, options: DockerOptions) -> None:
        self.options = options
        self.clock = ServerClock()
        self._client: docker.APIClient | None = None
        host = options.host or os.environ.get("DOCKER_HOST", "")
        self._tunnel = Tunnel(host) if host.startswith(f"{SCHEME}://") else None
        self._lock = threading.Lock()

    @property
    def api(self) -> docker.APIClient:
        with self._alone():
            if self._client is None or self._tunnel is not None:
                try:
                    url = self._tunnel.socket_url() if self._tunnel is not None else ""
                    with patient(min(CONNECT_WITHIN_S, _patience.within_s or CONNECT_WITHIN_S)):
                        self._client = self._client or self._connect(url)
                except OSError as error:
                    raise self.silent(error) from error
            return self._client

    def close(self) -> None:
        with suppress(RuntimeUnavailable), patient(CLOSE_WITHIN_S), self._alone():
            if self._client is not None:
                self._client.close()
                self._client = None
            if self._tunnel is not None:
                self._tunnel.close()

    @contextmanager
    def _alone(self) -> Iterator[None]:
        """Others may be connecting to an engine that is silent."""
        within_s = _patience.within_s or self.options.api_timeout_s
        if not self._lock.acquire(timeout=within_s):
            raise self.silent(TimeoutError(f"not connected within {within_s:g} s"))
        try:
            yield
        finally:
            self._lock.release()

    @contextmanager
    def answering(self, within_s: float | None = None) -> Iterator[docker.APIClient]:
        """The API; no answer (for ``within_s``, if that is given) and faults of the engine itself become
        RuntimeUnavailable.

        What the engine refuses (4xx) passes through as APIError.
        """
        try:
            with patient(within_s):
                yield self.api
        except APIError as error:
            if error.is_client_error():
                raise
            raise RuntimeUnavailable(f"the Docker engine failed: {explain(error)}") from error
        except (requests.RequestException, DockerException, HTTPError) as error:
            raise self.silent(error) from error

    def log_stream(self, container: str, *, follow: bool, tail: int | None = None) -> LogStream:
        """What is kept of a container's output, as the engine sends it, both streams with their times.

        The SDK's own ``logs`` leaves out which stream it is. To be called within ``answering()``.
        """
        api = self.api
        wanted: dict[str, str | int] = {
            "stdout": 1,
            "stderr": 1,
            "timestamps": 1,
            "follow": int(follow),
            "tail": tail or "all",
        }
        response = api.get(
            f"{api.base_url}/v{api.api_version}/containers/{container}/logs",
            params=wanted,
            stream=True,
            timeout=(self.options.api_timeout_s, None),
        )
        try:
            response.raise_for_status()
        except requests.HTTPError as error:
            create_api_error_from_http_exception(error)
        return LogStream(response)

    def silent(self, error: Exception) -> RuntimeUnavailable:
        """What to raise where there was no answer: it says where, and what to do."""
        return RuntimeUnavailable(
            f"no Docker engine answers at {self._address()}: start it, point DOCKER_HOST at it,"
            f" or set PUNCTUAL_RUNTIME=process ({one_line(str(error), 160)})"
        )

    def _connect(self, through: str) -> docker.APIClient:
        """``through``: the near end of a tunnel, or empty."""
        where = {"base_url": through} if through else self._where()
        _knock(str(where.get("base_url", LOCAL_SOCKET)), self.options.api_timeout_s)
        timeout = self.options.api_timeout_s
        client = _Client(**where, version="auto", timeout=timeout, max_pool_size=256, num_pools=8)
        client.hooks["response"].append(self._learn_time)
        return client

    def _learn_time(self, response: requests.Response, *args: Any, **kwargs: Any) -> None:
        self.clock.learn(response.headers.get("Date", ""), utcnow() - response.elapsed)

    def _where(self) -> dict[str, Any]:
        if self.options.host:
            return {"base_url": self.options.host}
        return dict(kwargs_from_env())

    def _address(self) -> str:
        return str(self._where().get("base_url", LOCAL_SOCKET))


def _knock(url: str, timeout_s: float) -> None:
    """Raise OSError where nobody listens; the SDK would leave its socket unclosed then."""
    scheme, _, path = url.partition("://")
    if scheme in ("unix", "http+unix"):
        with socket.socket(socket.AF_UNIX) as knocking:
            knocking.settimeout(timeout_s)
            knocking.connect("/" + path.lstrip("/"))


class LogStream:
    """Pieces of a container's output as they arrive."""

    def __init__(self, response: requests.Response) -> None:
        pieces = response.raw.stream(STREAM_BYTES)
        self._stream: CancellableStream[bytes] = CancellableStream(pieces, response)
        self._poll = select.poll()
        with suppress(AttributeError, TypeError, ValueError, OSError):  # over SSH it is no socket
            self._poll.register(response.raw.connection.sock, select.POLLIN)  # type: ignore[union-attr]

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._stream)

    def has_more(self) -> bool:
        """Whether more has surely arrived already."""
        return bool(self._poll.poll(0))

    def close(self) -> None:
        self._stream.close()


def cut(stream: Any) -> None:
    """End a stream of the SDK, from any thread; no error where it has ended already.

    Raises DockerException over SSH, where it cannot be done.
    """
    if hasattr(stream, "close"):
        # What the SDK reaches into is gone (AttributeError) or shut (OSError) once the stream has ended.
        with suppress(OSError, AttributeError):
            stream.close()


def explain(error: APIError) -> str:
    """The engine's own words, on one line."""
    return one_line(str(error.explanation or error))
