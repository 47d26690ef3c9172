"""Getting an image that the engine does not have."""

from __future__ import annotations

import logging
import threading

import docker
import requests
from docker.errors import APIError, DockerException
from docker.utils import parse_repository_tag

from containers.docker.engine import explain
from containers.outcome import Reason, one_line
from containers.runtime import LaunchFailed

logger = logging.getLogger(__name__)


def pull(api: docker.APIClient, image: str, timeout_s: float) -> None:
    """Pull ``image``, with credentials from the usual Docker config.

    Raises LaunchFailed(IMAGE_PULL_FAILED) with the engine's words, or after ``timeout_s``. The
    engine's stream can be silent for ever, so it is read in a thread that is left behind then.
    """
    problems: list[str] = []
    thread = threading.Thread(target=_pull, args=(api, image, problems), name=f"pull-{image}", daemon=True)
    thread.start()
    thread.join(timeout_s)
    if thread.is_alive():
        problems = [f"it did not arrive within {timeout_s:g} s"]
    if problems:
        raise LaunchFailed(
            Reason.IMAGE_PULL_FAILED,
            f"the image {image!r} is not on this engine and cannot be pulled: {problems[0]}",
        )
    logger.info("image_pulled", extra={"image": image})


def _pull(api: docker.APIClient, image: str, problems: list[str]) -> None:
    repository, tag = parse_repository_tag(image)
    try:
        for step in api.pull(repository, tag=tag or "latest", stream=True, decode=True):
            if "error" in step:
                problems.append(one_line(str(step["error"])))
    except APIError as error:
        problems.append(explain(error))
    except (requests.RequestException, DockerException) as error:
        problems.append(one_line(str(error)))
