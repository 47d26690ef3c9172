"""What of an engine's disk images may take that were pulled for runs.

An image that was pulled here gets a second name, ``punctual-pulled:<hash of the first>``, so that whoever
tidies up tells it from what others have put there, and the engine notes when it was last given: its last
use, to the hour. Over the limit the image that was used longest ago goes, with both names; one that a
container needs, or that somebody has given yet another name, stays.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from hashlib import blake2b
from typing import Any

import docker
from docker.errors import APIError, NotFound
from docker.utils import parse_repository_tag

from containers.docker.engine import Engine, explain
from containers.docker.manifest import instant
from containers.runtime import RuntimeUnavailable
from scheduler_project.kernel.clock import monotonic, utcnow

logger = logging.getLogger(__name__)

USED_AGAIN_S = 3600.0


@dataclass(frozen=True, slots=True)
class PulledImage:
    """``names``: those to remove. ``size``: bytes; layers that images share count for each."""

    names: tuple[str, ...]
    size: int
    used_at: datetime


def mark_of(image: str, pulled: str) -> str:
    """The second name of an image (pure)."""
    repository, tag = parse_repository_tag(image)
    name = f"{repository}:{tag or 'latest'}"
    return f"{pulled}:{blake2b(name.encode(), digest_size=16).hexdigest()}"


def too_many(images: Iterable[PulledImage], in_use: int, limit: int) -> list[PulledImage]:
    """Those to remove so that, with ``in_use`` bytes, ``limit`` is kept; longest unused first (pure)."""
    waiting = sorted(images, key=lambda image: image.used_at)
    total = in_use + sum(image.size for image in waiting)
    gone = []
    for image in waiting:
        if total <= limit:
            break
        gone.append(image)
        total -= image.size
    return gone


class ImageDisk:
    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._pulled = engine.options.pulled
        self._marked_at: dict[str, float] = {}
        self._lock = threading.Lock()

    def pulled(self, image: str) -> None:
        """It has just been pulled. Where it cannot be marked it is kept, whatever the limit."""
        with self._quietly() as api:
            self._mark(api, image)

    def used(self, image: str) -> None:
        """A run uses it: noted once an hour, and only of what was pulled here."""
        with self._lock:
            if monotonic() - self._marked_at.get(image, -USED_AGAIN_S) < USED_AGAIN_S:
                return
            self._marked_at[image] = monotonic()
        with self._quietly() as api:
            if mark_of(image, self._pulled) in _inspect(api, image)["RepoTags"]:
                self._mark(api, image)

    def keep_within(self, limit: int) -> list[str]:
        """Remove images that were pulled here until ``limit`` bytes are kept; the names of the removed."""
        with self._engine.answering() as api:
            listed = [self._read(api, entry) for entry in api.images(filters={"reference": self._pulled})]
            used = {str(container["ImageID"]) for container in api.containers(all=True)}
            young = utcnow() - timedelta(seconds=self._engine.options.pulled_kept_s)
            free = {
                key: image
                for key, image, foreign in listed
                if key not in used and not foreign and image.used_at <= young
            }
            held = sum(image.size for key, image, _ in listed if key not in free)
            return [
                name for image in too_many(free.values(), held, limit) for name in self._remove(api, image)
            ]

    @contextmanager
    def _quietly(self) -> Iterator[docker.APIClient]:
        """No run is to fail for the sake of tidiness."""
        try:
            with self._engine.answering() as api:
                yield api
        except (APIError, RuntimeUnavailable) as error:
            logger.warning("image_not_marked", extra={"error": str(error)})

    def _remove(self, api: docker.APIClient, image: PulledImage) -> list[str]:
        try:
            for name in image.names:
                api.remove_image(name)
        except NotFound:
            return []
        except APIError as error:
            logger.warning("image_left", extra={"image": image.names[-1], "error": explain(error)})
            return []
        with self._lock:
            self._marked_at.pop(image.names[0], None)
        return [image.names[0]]

    def _mark(self, api: docker.APIClient, image: str) -> None:
        repository, tag = mark_of(image, self._pulled).split(":")
        api.tag(image, repository, tag, force=True)
        with self._lock:
            self._marked_at[image] = monotonic()

    def _read(self, api: docker.APIClient, entry: Mapping[str, Any]) -> tuple[str, PulledImage, bool]:
        """Its id, what it is, and whether it has a name that is none of ours."""
        details = _inspect(api, entry["Id"])  # the list has only the names that it was filtered by
        tags = [str(tag) for tag in details["RepoTags"]]
        marks = {tag for tag in tags if tag.startswith(f"{self._pulled}:")}
        names = [tag for tag in tags if tag not in marks]
        foreign = any(mark_of(name, self._pulled) not in marks for name in names)
        used_at = instant(details["Metadata"]["LastTagTime"])
        return str(entry["Id"]), PulledImage((*names, *sorted(marks)), int(entry["Size"]), used_at), foreign


def _inspect(api: docker.APIClient, image: str) -> dict[str, Any]:
    return dict(api.inspect_image(image))  # type: ignore[no-untyped-call]
