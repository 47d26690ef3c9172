"""The connection to a Docker engine, and what its errors mean for us."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.utils import kwargs_from_env

from containers.outcome import one_line
from containers.runtime import RuntimeUnavailable

__all__ = ["APIError", "DockerOptions", "Engine", "NotFound", "cut", "explain"]

MEBIBYTE = 1024 * 1024
LOCAL_SOCKET = "unix:///var/run/docker.sock"


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerOptions:
    """``host``: the engine's address (empty: DOCKER_HOST and its companions, else the local socket).
    ``network``: for specs that name none. ``init``: a tiny first process that passes signals on and
    reaps zombies. ``tmp_bytes``: size of /tmp. ``log_file_bytes`` × ``log_files``: what the engine
    keeps of one container's output."""

    host: str = ""
    network: str = "bridge"
    init: bool = True
    tmp_bytes: int = 256 * MEBIBYTE
    log_file_bytes: int = 64 * MEBIBYTE
    log_files: int = 4
    api_timeout_s: int = 60


class Engine:
    """Connects on first use, so that a worker can start before its engine does."""

    def __init__(self, options: DockerOptions) -> None:
        self.options = options
        self._client: docker.APIClient | None = None
        self._lock = threading.Lock()

    @property
    def api(self) -> docker.APIClient:
        with self._lock:
            if self._client is None:
                try:
                    self._client = self._connect()
                except OSError as error:
                    raise self.silent(error) from error
            return self._client

    def close(self) -> None:
        with self._lock:
            if self._client is not None:
                self._client.close()
                self._client = None

    @contextmanager
    def answering(self) -> Iterator[docker.APIClient]:
        """The API; no answer and faults of the engine itself become RuntimeUnavailable.

        What the engine refuses (4xx) passes through as APIError.
        """
        try:
            yield self.api
        except APIError as error:
            if error.is_client_error():
                raise
            raise RuntimeUnavailable(f"the Docker engine failed: {explain(error)}") from error
        except (requests.RequestException, DockerException) as error:
            raise self.silent(error) from error

    def silent(self, error: Exception) -> RuntimeUnavailable:
        """What to raise where there was no answer: it says where, and what to do."""
        return RuntimeUnavailable(
            f"no Docker engine answers at {self._address()}: start it, point DOCKER_HOST at it,"
            f" or set PUNCTUAL_RUNTIME=process ({one_line(str(error), 160)})"
        )

    def _connect(self) -> docker.APIClient:
        timeout = self.options.api_timeout_s
        self._knock()
        return docker.APIClient(
            **self._where(), version="auto", timeout=timeout, max_pool_size=256, num_pools=8
        )

    def _knock(self) -> None:
        """Raise OSError where nobody listens; the SDK would leave its socket unclosed then."""
        scheme, _, path = self._address().partition("://")
        if scheme in ("unix", "http+unix"):
            with socket.socket(socket.AF_UNIX) as knocking:
                knocking.settimeout(self.options.api_timeout_s)
                knocking.connect("/" + path.lstrip("/"))

    def _where(self) -> dict[str, Any]:
        if self.options.host:
            return {"base_url": self.options.host}
        return dict(kwargs_from_env())

    def _address(self) -> str:
        return str(self._where().get("base_url", LOCAL_SOCKET))


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
