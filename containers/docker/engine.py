"""The connection to a Docker engine, and what its errors mean for us."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import docker
import requests
from docker.errors import APIError, DockerException, NotFound
from docker.utils import kwargs_from_env

from containers.outcome import one_line
from containers.runtime import RuntimeUnavailable

__all__ = ["APIError", "DockerOptions", "Engine", "NotFound", "explain"]

MEBIBYTE = 1024 * 1024


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
                self._client = self._connect()
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
            raise RuntimeUnavailable(
                f"no Docker engine answers at {self._address()}: start it, point DOCKER_HOST at it,"
                f" or set PUNCTUAL_RUNTIME=process ({one_line(str(error), 160)})"
            ) from error

    def _connect(self) -> docker.APIClient:
        timeout = self.options.api_timeout_s
        return docker.APIClient(
            **self._where(), version="auto", timeout=timeout, max_pool_size=256, num_pools=8
        )

    def _where(self) -> dict[str, Any]:
        if self.options.host:
            return {"base_url": self.options.host}
        return dict(kwargs_from_env())

    def _address(self) -> str:
        return str(self._where().get("base_url", "the local socket"))


def explain(error: APIError) -> str:
    """The engine's own words, on one line."""
    return one_line(str(error.explanation or error))
