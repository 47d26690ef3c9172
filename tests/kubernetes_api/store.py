"""Objects with versions: what an API server keeps, and the history that watches are served from."""

from __future__ import annotations

import copy
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from tests.kubernetes_api.clock import cluster_now
from tests.kubernetes_api.selectors import Selector

Json = dict[str, Any]
FOREGROUND = "foregroundDeletion"
ORPHAN = "orphan"
HISTORY = 10_000


class Problem(Exception):
    """An answer that is a Status with ``status: Failure``."""

    def __init__(self, code: int, reason: str, message: str) -> None:
        super().__init__(message)
        self.code, self.reason, self.message = code, reason, message

    def status(self) -> Json:
        return {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
            "code": self.code,
        }


def not_found(resource: str, name: str) -> Problem:
    return Problem(404, "NotFound", f'{resource} "{name}" not found')


def gone(version: int, oldest: int) -> Problem:
    return Problem(410, "Expired", f"too old resource version: {version} ({oldest})")


@dataclass(frozen=True)
class Change:
    version: int
    resource: str
    namespace: str
    before: Json | None
    after: Json | None

    def event(self, selector: Selector) -> Json | None:
        """As one who watches with that selector sees it; None: not at all."""
        was = self.before is not None and selector.matches(self.before)
        after = self.after
        if after is not None and selector.matches(after):
            return {"type": "MODIFIED" if was else "ADDED", "object": after}
        if not was or self.before is None:
            return None
        last = after or self.before
        metadata = {**last["metadata"], "resourceVersion": str(self.version)}
        return {"type": "DELETED", "object": {**last, "metadata": metadata}}


class Store:
    """Objects are never changed in place: who has one may keep it."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.changed = threading.Condition(self.lock)
        self.version = 1000
        self.oldest = 0
        self._objects: dict[tuple[str, str], dict[str, Json]] = {}
        self._history: deque[Change] = deque(maxlen=HISTORY)

    def create(self, resource: str, namespace: str, given: Json) -> Json:
        thing = copy.deepcopy(given)
        metadata = thing.setdefault("metadata", {})
        if "generateName" in metadata and "name" not in metadata:
            metadata["name"] = metadata["generateName"] + uuid.uuid4().hex[:5]
        name = metadata["name"]
        with self.lock:
            if name in self._of(resource, namespace):
                raise Problem(409, "AlreadyExists", f'{resource} "{name}" already exists')
            metadata |= {"namespace": namespace, "uid": str(uuid.uuid4()), "creationTimestamp": now_text()}
            thing.setdefault("status", {})
            return self._put(resource, namespace, name, thing)

    def find(self, resource: str, namespace: str, name: str) -> Json | None:
        with self.lock:
            return self._of(resource, namespace).get(name)

    def get(self, resource: str, namespace: str, name: str) -> Json:
        found = self.find(resource, namespace, name)
        if found is None:
            raise not_found(resource, name)
        return found

    def select(
        self, resource: str, namespace: str, selector: Selector | None = None
    ) -> tuple[list[Json], int]:
        with self.lock:
            found = [thing for _, thing in sorted(self._of(resource, namespace).items())]
            return [thing for thing in found if selector is None or selector.matches(thing)], self.version

    def everywhere(self, resource: str) -> list[Json]:
        with self.lock:
            return [
                thing
                for (kind, _), things in list(self._objects.items())
                if kind == resource
                for thing in things.values()
            ]

    def change(self, resource: str, namespace: str, name: str, edit: Callable[[Json], object]) -> Json | None:
        """``edit`` a copy and keep it; None where there is no such object. It goes when nothing holds it."""
        with self.lock:
            old = self.find(resource, namespace, name)
            if old is None:
                return None
            new = copy.deepcopy(old)
            edit(new)
            if new == old:
                return old
            if _may_go(new):
                self._drop(resource, namespace, name, new)
                return new
            return self._put(resource, namespace, name, new)

    def remove(self, resource: str, namespace: str, name: str) -> None:
        """Take it off, unless a finalizer holds it: then it is marked."""

        self.change(resource, namespace, name, lambda thing: _terminate(thing, 0))

    def delete(self, resource: str, namespace: str, name: str, options: Json) -> Json:
        """As the DELETE of the API does, by the kind's rules. Raises Problem (404)."""
        with self.lock:
            found = self.get(resource, namespace, name)
            if resource == "pods" and (grace := _grace(found, options)) > 0:
                self.change(resource, namespace, name, lambda pod: _terminate(pod, grace))
            else:
                policy = options.get("propagationPolicy") or "Background"
                self.change(resource, namespace, name, lambda thing: _mark_policy(thing, policy))
                self.remove(resource, namespace, name)
            return found

    def compact(self) -> None:
        """Forget the history: whoever watches from before gets 410."""
        with self.changed:
            self._history.clear()
            self.oldest = self.version = self.version + 1
            self.changed.notify_all()

    def changes_since(self, version: int) -> list[Change]:
        """Raises Problem (410) where that is longer ago than the history."""
        with self.lock:
            if version < self.oldest:
                raise gone(version, self.oldest)
            newer = []
            for change in reversed(self._history):
                if change.version <= version:
                    break
                newer.append(change)
            return newer[::-1]

    def wait(self, version: int, timeout_s: float) -> int:
        """The newest version, once it is beyond ``version`` or the time is up."""
        with self.changed:
            if self.version <= version:
                self.changed.wait(timeout_s)
            return self.version

    def _of(self, resource: str, namespace: str) -> dict[str, Json]:
        return self._objects.setdefault((resource, namespace), {})

    def _put(self, resource: str, namespace: str, name: str, thing: Json) -> Json:
        before = self._of(resource, namespace).get(name)
        self._note(Change(self.version + 1, resource, namespace, before, thing))
        thing["metadata"]["resourceVersion"] = str(self.version)
        self._of(resource, namespace)[name] = thing
        return thing

    def _drop(self, resource: str, namespace: str, name: str, last: Json) -> None:
        before = self._of(resource, namespace).pop(name)
        # Its last state is part of what the watchers are told.
        self._note(Change(self.version + 1, resource, namespace, {**before, **last}, None))

    def _note(self, change: Change) -> None:
        with self.changed:
            if len(self._history) == HISTORY:
                self.oldest = self._history[0].version
            self.version = change.version
            self._history.append(change)
            self.changed.notify_all()


def now_text(later_s: float = 0.0) -> str:
    """As the API writes times: whole seconds."""
    return f"{cluster_now() + timedelta(seconds=later_s):%Y-%m-%dT%H:%M:%SZ}"


def owned_by(thing: Json, owner: Json) -> bool:
    return any(ref["uid"] == owner["metadata"]["uid"] for ref in owners(thing))


def owners(thing: Json) -> Iterator[Json]:
    yield from thing["metadata"].get("ownerReferences") or ()


def _may_go(thing: Json) -> bool:
    metadata = thing["metadata"]
    marked = "deletionTimestamp" in metadata and not metadata.get("deletionGracePeriodSeconds")
    return marked and not metadata.get("finalizers")


def _grace(pod: Json, options: Json) -> int:
    """0 where no kubelet has to end it first."""
    if not pod["spec"].get("nodeName") or pod["status"].get("phase") in ("Failed", "Succeeded"):
        return 0
    asked = options.get("gracePeriodSeconds")
    return int(pod["spec"].get("terminationGracePeriodSeconds", 30) if asked is None else asked)


def _terminate(thing: Json, grace: int) -> None:
    """Of a thing that is to go already, a shorter grace counts from the first request for its end."""
    metadata = thing["metadata"]
    if "deletionTimestamp" not in metadata:
        metadata["deletionTimestamp"] = now_text(grace)
    elif grace < (old := metadata.get("deletionGracePeriodSeconds", 0)):
        due = datetime.fromisoformat(metadata["deletionTimestamp"]) - timedelta(seconds=old - grace)
        metadata["deletionTimestamp"] = f"{due:%Y-%m-%dT%H:%M:%SZ}"
    else:
        return
    metadata["deletionGracePeriodSeconds"] = grace


def _mark_policy(thing: Json, policy: str) -> None:
    finalizer = {"Foreground": FOREGROUND, "Orphan": ORPHAN}.get(policy)
    if finalizer is not None:
        metadata = thing["metadata"]
        metadata["finalizers"] = sorted({*metadata.get("finalizers", []), finalizer})
        metadata.setdefault("deletionTimestamp", now_text())
