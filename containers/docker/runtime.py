"""Starting, finding and forgetting containers of a Docker engine."""

from __future__ import annotations

import threading
from typing import Any

import requests

from containers.docker.container import DockerContainer, remove_container
from containers.docker.deaths import Deaths
from containers.docker.engine import APIError, DockerOptions, Engine, NotFound, explain
from containers.docker.images import pull
from containers.docker.manifest import container_settings, host_settings
from containers.outcome import Reason
from containers.runtime import LaunchFailed, RuntimeUnavailable
from containers.spec import LABEL_MANAGED, ContainerSpec
from scheduler_project.kernel.clock import monotonic

APPEARS_WITHIN_S = 5.0


class DockerRuntime:
    name = "docker"

    def __init__(self, options: DockerOptions | None = None) -> None:
        self._engine = Engine(options or DockerOptions())
        self._deaths = Deaths(self._engine)

    def launch(self, spec: ContainerSpec) -> DockerContainer:
        if not spec.image:
            raise LaunchFailed(Reason.START_FAILED, "no image is given, and the docker runtime needs one")
        try:
            if not self._create(spec):
                with self._engine.answering() as api:
                    pull(api, spec.image, spec.start_timeout_s)
                if not self._create(spec):
                    raise LaunchFailed(
                        Reason.IMAGE_PULL_FAILED, f"{spec.image!r} was pulled and is not there"
                    )
        except APIError as error:
            raise LaunchFailed(Reason.START_FAILED, f"the engine refuses it: {explain(error)}") from error
        return self._start(spec.name)

    def attach(self, name: str) -> DockerContainer | None:
        details = self._inspect(name)
        if details is None or details["State"]["Status"] == "created":
            return None
        return DockerContainer(self._engine, self._deaths, details)

    def forget(self, name: str) -> None:
        remove_container(self._engine, name)

    def ping(self) -> None:
        with self._engine.answering() as api:
            api.ping()

    def owned(self) -> list[str]:
        with self._engine.answering() as api:
            found = api.containers(all=True, filters={"label": LABEL_MANAGED})
        return sorted(str(container["Names"][0]).lstrip("/") for container in found)

    def close(self) -> None:
        self._deaths.close()
        self._engine.close()

    def _create(self, spec: ContainerSpec) -> bool:
        """Make the container, or find it made. False: the image is missing."""
        with self._engine.answering() as api:
            host = api.create_host_config(**host_settings(spec, self._engine.options))
            try:
                api.create_container(**container_settings(spec), host_config=host)
            except NotFound as error:
                if "image" not in explain(error).lower():
                    raise
                return False
            except APIError as error:
                # Conflict: this attempt's container exists, made by an earlier or another worker.
                if error.status_code != requests.codes.conflict:
                    raise
        return True

    def _start(self, name: str) -> DockerContainer:
        details = self._inspect_made(name)
        if details["State"]["Status"] == "created":
            self._start_created(name)
            details = self._inspect_made(name)
        return DockerContainer(self._engine, self._deaths, details)

    def _start_created(self, name: str) -> None:
        try:
            # Not through answering(): what the engine says of a command that cannot be
            # started comes as an error of its own (5xx), and is final.
            self._engine.api.start(name)
        except APIError as error:
            remove_container(self._engine, name)
            raise LaunchFailed(Reason.START_FAILED, explain(error)) from error
        except requests.RequestException as error:
            raise RuntimeUnavailable(f"the Docker engine did not start {name}: {error}") from error

    def _inspect_made(self, name: str) -> dict[str, Any]:
        """A container that must be there; one that another caller makes is named before it shows."""
        deadline = monotonic() + APPEARS_WITHIN_S
        while (details := self._inspect(name)) is None:
            if monotonic() >= deadline:
                raise RuntimeUnavailable(f"{name} was removed while it was being started")
            threading.Event().wait(0.02)
        return details

    def _inspect(self, name: str) -> dict[str, Any] | None:
        try:
            with self._engine.answering() as api:
                return dict(api.inspect_container(name))
        except NotFound:
            return None
