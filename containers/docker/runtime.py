"""Starting, finding and forgetting containers of a Docker engine."""

from __future__ import annotations

import hashlib
import threading
from typing import Any
from uuid import UUID

import requests

from containers.capacity import Capacity
from containers.docker.container import ANSWERS_WITHIN_S, DockerContainer, remove_container
from containers.docker.deaths import Deaths
from containers.docker.disk import ImageDisk
from containers.docker.engine import APIError, DockerOptions, Engine, NotFound, explain, patient
from containers.docker.images import Images
from containers.docker.manifest import container_settings, host_settings, ignored
from containers.honouring import Wish, refuse
from containers.launching import Launching
from containers.outcome import Reason
from containers.runtime import LaunchFailed, RuntimeUnavailable
from containers.spec import (
    LABEL_ATTEMPT,
    LABEL_EXECUTION,
    LABEL_MANAGED,
    LABEL_NAMESPACE,
    ContainerSpec,
    PullPolicy,
    container_name,
)
from scheduler_project.kernel.clock import monotonic
from scheduler_project.kernel.texts import shown

APPEARS_WITHIN_S = 5.0
START_AT_LEAST_S = 5.0
"""So long an engine may take for a step of a start, however little time is left for it."""
LACKING = (Wish.CLUSTER_VOLUMES, Wish.SERVICE_ACCOUNT, Wish.POD_TEMPLATE)
NEVER_PULLED = "the image {image} is not on this engine, and pullPolicy {name} forbids to pull it"
UNLIMITED = (
    "this engine cannot limit the size of a root that is not read-only: make it read-only, which limits /tmp"
    " instead, or leave out container.resources.ephemeralStorage ({words})"
)
NO_GPU = "this engine has no GPU for containers ({words})"


class DockerRuntime:
    name = "docker"

    def __init__(self, options: DockerOptions | None = None) -> None:
        self._engine = Engine(options or DockerOptions())
        self._deaths = Deaths(self._engine)
        self._disk = ImageDisk(self._engine)
        self._images = Images(self._engine, self._disk)

    def identity(self) -> str:
        with self._engine.answering() as api:
            found = api.info()
        # The ID alone is not enough: hosts made from one image have it in common, two engines of a host too.
        seen = [found.get(name) for name in ("ID", "Name", "DockerRootDir")]
        return "docker-" + hashlib.blake2b(repr(seen).encode(), digest_size=16).hexdigest()

    def capacity(self) -> Capacity:
        with self._engine.answering() as api:
            found = api.info()
        return Capacity(float(found["NCPU"]), int(found["MemTotal"]))

    def launch(self, spec: ContainerSpec, launching: Launching | None = None) -> DockerContainer:
        launching = launching or Launching(spec.start_timeout_s)
        _check_launchable(spec)
        try:
            made = self._make(spec, launching)
        except APIError as error:
            raise LaunchFailed(Reason.START_FAILED, f"the engine refuses it: {explain(error)}") from error
        self._disk.used(spec.image)
        if made:
            launching.not_started()
        with patient(_patience(launching)):
            return self._started(spec, made) if made else self._taken_up(spec)

    def attach(self, name: str, launching: Launching | None = None) -> DockerContainer | None:
        details = self._found_again(name)
        if details is None or details["State"]["Status"] == "created":
            return None
        return self._found(details)

    def forget(self, name: str) -> None:
        if not remove_container(self._engine, name) and (renamed := self._renamed(name)):
            remove_container(self._engine, renamed)

    def secret_source(self) -> None:
        """It keeps none."""

    def ping(self) -> None:
        with self._engine.answering() as api:
            api.ping()

    def has_image(self, image: str) -> bool:
        """Whether it need not be pulled. Raises RuntimeUnavailable."""
        with self._engine.answering() as api:
            try:
                api.inspect_image(image)  # type: ignore[no-untyped-call]
            except NotFound:
                return False
        return True

    def owned(self, namespace: str = "") -> list[str]:
        return sorted(map(_made_as, self._labelled(namespace)))

    def _labelled(self, namespace: str = "") -> list[dict[str, Any]]:
        labels = [LABEL_MANAGED, *([f"{LABEL_NAMESPACE}={namespace}"] if namespace else [])]
        with self._engine.answering() as api:
            return list(api.containers(all=True, filters={"label": labels}))

    def _renamed(self, name: str) -> str:
        """The id of the container that was made under that name and has another now, or empty."""
        return next((str(each["Id"]) for each in self._labelled() if _made_as(each) == name), "")

    def keep_images_within(self, limit_bytes: int) -> list[str]:
        return self._disk.keep_within(limit_bytes)

    def close(self) -> None:
        self._images.close()
        self._deaths.close()
        self._engine.close()

    def _make(self, spec: ContainerSpec, launching: Launching) -> str:
        """Make the container, with its image: its id; empty where it was there already.

        What is made is there; only then it may be too late.
        """
        launching.check()
        if spec.pull_policy is PullPolicy.ALWAYS and self._inspect(spec.name) is None:
            self._images.fetch(spec.image, launching)
        made = self._create(spec, launching)
        if made is None:
            if spec.pull_policy is PullPolicy.NEVER:
                raise LaunchFailed(
                    Reason.IMAGE_PULL_FAILED,
                    NEVER_PULLED.format(image=shown(spec.image), name=spec.pull_policy),
                )
            self._images.fetch(spec.image, launching)
            launching.check()
            made = self._create(spec, launching)
            if made is None:
                raise LaunchFailed(
                    Reason.IMAGE_PULL_FAILED, f"the image {shown(spec.image)} has arrived and is not there"
                )
        if names := ignored(spec):
            launching.tell(f"Docker has nothing like {', '.join(names)}: ignored here")
        return made

    def _create(self, spec: ContainerSpec, launching: Launching) -> str | None:
        """Make the container: its id; empty where it is there. None: the image is missing."""
        with self._engine.answering(_patience(launching)) as api:
            settings = host_settings(spec, self._engine.options)
            host = api.create_host_config(**settings)
            try:
                made = api.create_container(**container_settings(spec), host_config=host)
            except NotFound as error:
                if "image" not in explain(error).lower():
                    raise
                return None
            except APIError as error:
                if "storage_opt" in settings and "storage" in explain(error).lower():
                    raise LaunchFailed(Reason.START_FAILED, UNLIMITED.format(words=explain(error))) from error
                # Conflict: this attempt's container exists, made by an earlier or another worker.
                if error.status_code != requests.codes.conflict:
                    raise
                return ""
        return str(made["Id"])

    def _started(self, spec: ContainerSpec, container_id: str) -> DockerContainer:
        container = DockerContainer(self._engine, self._deaths, container_id, spec.name)
        try:
            self._start_created(spec)
        except BaseException:
            container.leave()
            raise
        return container

    def _taken_up(self, spec: ContainerSpec) -> DockerContainer:
        """What somebody else has made, and perhaps not started yet."""
        details = self._inspect_made(spec.name)
        if details["State"]["Status"] == "created":
            return self._started(spec, str(details["Id"]))
        return self._found(details)

    def _found(self, details: dict[str, Any]) -> DockerContainer:
        name = str(details["Name"]).lstrip("/")
        return DockerContainer(self._engine, self._deaths, str(details["Id"]), name, details)

    def _start_created(self, spec: ContainerSpec) -> None:
        try:
            # Not through answering(): what the engine says of a command that cannot be
            # started comes as an error of its own (5xx), and is final.
            self._engine.api.start(spec.name)
        except APIError as error:
            remove_container(self._engine, spec.name)
            words = explain(error)
            no_gpu = spec.gpus and "device driver" in words
            raise LaunchFailed(
                Reason.START_FAILED, NO_GPU.format(words=words) if no_gpu else words
            ) from error
        except requests.RequestException as error:
            raise RuntimeUnavailable(f"the Docker engine did not start {spec.name}: {error}") from error

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
            with self._engine.answering(ANSWERS_WITHIN_S) as api:
                return dict(api.inspect_container(name))
        except NotFound:
            return None

    def _found_again(self, name: str) -> dict[str, Any] | None:
        """By its name, or by its labels where somebody has given it another."""
        details = self._inspect(name)
        if details is None and (renamed := self._renamed(name)):
            details = self._inspect(renamed)
        return details


def _patience(launching: Launching) -> float:
    return max(START_AT_LEAST_S, launching.left_s)


def _made_as(listed: dict[str, Any]) -> str:
    """The name of a container of ours by its labels, which stay as they are; else the one that it has."""
    labels = listed["Labels"]
    try:
        return container_name(UUID(labels[LABEL_EXECUTION]), int(labels[LABEL_ATTEMPT]))
    except (KeyError, ValueError):
        return str(listed["Names"][0]).lstrip("/")


def _check_launchable(spec: ContainerSpec) -> None:
    if not spec.image:
        raise LaunchFailed(Reason.START_FAILED, "no image is given, and the docker runtime needs one")
    refuse(spec, "docker", LACKING, "run it on a worker of kubernetes, or leave these out")
