"""Getting an image that the engine does not have.

However many runs of one worker wait for an image, it is pulled once: registries count pulls. Each
run waits for its own time and may leave before; when the last has left, the pull is given up.
"""

from __future__ import annotations

import json
import logging
import random
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import docker
import requests
from docker.auth import get_config_header, resolve_repository_name
from docker.errors import APIError, DockerException, create_api_error_from_http_exception
from docker.types import CancellableStream
from docker.utils import parse_repository_tag

from containers.docker.disk import ImageDisk
from containers.docker.engine import Engine, cut, explain
from containers.docker.progress import Failure, PullProgress, failure
from containers.launching import Launching
from containers.outcome import Reason, one_line
from containers.runtime import LaunchFailed, RuntimeUnavailable
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import monotonic

logger = logging.getLogger(__name__)

TELL_FIRST_S, TELL_CAP_S = 0.5, 10.0
SILENT_FOR_S = 300.0
LIMITED_CAP_S = 60.0
FAULT_CAP_S = 15.0


class Images:
    """The pulls that are under way, by image; ``disk`` is told of what has arrived."""

    def __init__(self, engine: Engine, disk: ImageDisk) -> None:
        self._engine = engine
        self._disk = disk
        self._pulls: dict[str, _Pull] = {}
        self._lock = threading.Lock()

    def fetch(self, image: str, launching: Launching) -> None:
        """Pull ``image``, with credentials from the usual Docker config; progress goes to ``launching``.

        Limits of the registry and passing faults are waited out. Raises LaunchFailed
        (IMAGE_PULL_FAILED) with the engine's words, or when the time for the start is over.
        """
        with self._joined(image) as pull:
            _await(pull, launching)

    def close(self) -> None:
        with self._lock:
            for pull in self._pulls.values():
                pull.give_up()

    @contextmanager
    def _joined(self, image: str) -> Iterator[_Pull]:
        with self._lock:
            pull = self._pulls.get(image)
            if pull is None or pull.done.is_set():
                pull = self._pulls[image] = _Pull(self._engine, self._disk, image)
            pull.waiting += 1
        try:
            yield pull
        finally:
            with self._lock:
                pull.waiting -= 1
                if not pull.waiting:
                    pull.give_up()
                    if self._pulls.get(image) is pull:
                        del self._pulls[image]


def _await(pull: _Pull, launching: Launching) -> None:
    told, began = "", monotonic()
    for pause in exponential(TELL_FIRST_S, cap=TELL_CAP_S):
        if (line := pull.line) != told:
            launching.tell(line)
            told = line
        if launching.wait(pause, pull.done):
            break
        if launching.left_s == 0:
            raise _not_had(pull.image, f"it did not arrive within {launching.timeout_s:g} s ({pull.line})")
    if pull.problem:
        raise _not_had(pull.image, pull.problem)
    launching.tell(f"the image {pull.image} has arrived, after {monotonic() - began:.1f} s")


def _not_had(image: str, why: str) -> LaunchFailed:
    return LaunchFailed(
        Reason.IMAGE_PULL_FAILED, f"the image {image!r} is not on this engine and cannot be pulled: {why}"
    )


class _Pull:
    """One pull, in a thread of its own: the engine's stream can be silent for ever.

    Where the engine has not begun to answer there is nothing that could be cut; the thread is left
    behind then, for SILENT_FOR_S at most.
    """

    def __init__(self, engine: Engine, disk: ImageDisk, image: str) -> None:
        self.image = image
        self.waiting = 0
        self.done = threading.Event()
        self.problem = ""
        self.line = f"pulling the image {image}"
        self._engine = engine
        self._disk = disk
        self._given_up = threading.Event()
        self._response: requests.Response | None = None
        threading.Thread(target=self._run, name=f"pull-{image}", daemon=True).start()

    def give_up(self) -> None:
        self._given_up.set()
        if self._response is not None:
            _hang_up(self._response)

    def _run(self) -> None:
        limited, fault = exponential(1.0, cap=LIMITED_CAP_S), exponential(1.0, cap=FAULT_CAP_S)
        try:
            while words := self._pull_once():
                kind = failure(words)
                if not kind.passing:
                    self.problem = f"{kind.value} ({words})"
                    return
                # Not all at once again: many engines may have met the same limit.
                delay = next(limited if kind is Failure.RATE_LIMITED else fault) * random.uniform(0.75, 1.25)  # noqa: S311
                self.line = f"pulling the image {self.image}: {kind.value} ({words}); again in {delay:.0f} s"
                logger.warning("pull_again", extra={"image": self.image, "error": words, "delay_s": delay})
                if self._given_up.wait(delay):
                    return
            self._disk.pulled(self.image)
            logger.info("image_pulled", extra={"image": self.image})
        finally:
            self.done.set()

    def _pull_once(self) -> str:
        """What went wrong, or empty."""
        try:
            return self._read(self._engine.api)
        except APIError as error:
            return explain(error)
        except RuntimeUnavailable as error:
            return error.message
        except (requests.RequestException, DockerException) as error:
            return one_line(str(error))

    def _read(self, api: docker.APIClient) -> str:
        self._response = _request(api, self.image)
        if self._given_up.is_set():
            _hang_up(self._response)
        progress = PullProgress()
        for line in filter(None, self._response.iter_lines()):
            step = json.loads(line)
            if "error" in step:
                return one_line(str(step["error"]))
            progress.take(step)
            self.line = f"pulling the image {self.image}: {progress}"
        return ""


def _request(api: docker.APIClient, image: str) -> requests.Response:
    """The engine's stream of messages about its pull. As ``api.pull``, whose stream cannot be ended."""
    repository, tag = parse_repository_tag(image)
    registry, _ = resolve_repository_name(repository)
    api.reload_config()  # somebody may have logged in (or on to a new password) since this worker began
    credentials = get_config_header(api, registry)
    response = api.post(
        f"{api.base_url}/v{api.api_version}/images/create",
        params={"fromImage": repository, "tag": tag or "latest"},
        headers={"X-Registry-Auth": credentials} if credentials else {},
        stream=True,
        timeout=(api.timeout, SILENT_FOR_S),
    )
    try:
        response.raise_for_status()
    except requests.HTTPError as error:
        raise create_api_error_from_http_exception(error) from error
    return response


def _hang_up(response: requests.Response) -> None:
    """End the stream, upon which the engine gives up the pull."""
    with suppress(DockerException):  # over SSH it cannot be cut; it ends with the pull
        cut(CancellableStream(iter(()), response))
