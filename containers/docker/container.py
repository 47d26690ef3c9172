"""One container of a Docker engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import Any

import requests

from containers.docker.deaths import Deaths, stops
from containers.docker.engine import APIError, Engine, NotFound, cut, explain
from containers.docker.following import StreamFollower
from containers.docker.manifest import instant
from containers.logs import LogWriter
from containers.logs.follow import Follower
from containers.outcome import Exit, one_line
from containers.runtime import RuntimeUnavailable
from containers.waiting import Check, checked_wait, unchecked
from scheduler_project.kernel.clock import monotonic

LOOK_AT_LEAST_S = 60.0  # deaths.py looks at all containers together, and more often
KILL_WITHIN_S = 30.0
# An engine that is silent for longer is asked again: none of it does harm when it is done twice.
ANSWERS_WITHIN_S = 5.0
KILLS_WITHIN_S = 15.0  # it answers a SIGKILL when the container has ended, or after 10 s
TELLS_WITHIN_S = 10.0  # events, until OOM_WITHIN_S have passed
SIGKILLED = 137
OOM_WITHIN_S = 4  # late by up to 0.4 s on two idle cores
ENDED = ("exited", "dead")
# What is left of a container whose engine was stopped (SIGTERM, then SIGKILL) or had a crash (255). A program
# may end so by itself, but hardly in the very moment in which nobody sees it.
ENGINE_CODES = (137, 143, 255)
STOPPED = "somebody stopped it, or its engine shut down"
ENDED_UNSEEN = "it ended while it could not be seen: its engine or its host was stopped or restarted"
INIT_FAILURE = b"[FATAL tini ("


class DockerContainer:
    """``details``: of one that was found; it may have ended while nobody watched it. None: it was made just
    now, and its caller starts it; the engine is asked about it only when there is something to know, since
    it does not answer about one that ends at once before it has cleaned up.
    """

    def __init__(
        self,
        engine: Engine,
        deaths: Deaths,
        container_id: str,
        name: str,
        details: dict[str, Any] | None = None,
    ) -> None:
        self._engine = engine
        self._deaths = deaths
        self._id = container_id
        self._name = name
        self._made_at = engine.clock.now()
        self._started_at = instant(details["State"]["StartedAt"]) if details else None
        self._found = details is not None
        self._found_ended = details is not None and details["State"]["Status"] in ENDED
        self._watch = deaths.watch(self._id)
        self._look_at = monotonic() + (0.0 if details else LOOK_AT_LEAST_S)
        self._exit: Exit | None = None
        self._stopping = self._killed = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def started_at(self) -> datetime:
        if self._started_at is None:
            self._look()
        return self._started_at or self._made_at  # it has vanished already

    def now(self) -> datetime:
        return self._engine.clock.now()

    def leave(self) -> None:
        """It is not to be watched: it did not start."""
        self._deaths.unwatch(self._id, self._watch)

    def wait(self, timeout_s: float) -> Exit | None:
        deadline = monotonic() + timeout_s
        while self._exit is None:
            if self._watch.wake.is_set() or monotonic() >= self._look_at:
                self._look()
                continue
            left = deadline - monotonic()
            if left <= 0:
                return None
            self._watch.wake.wait(min(left, self._look_at - monotonic()))
        return self._exit

    def stop(self, grace_s: float, check: Check = unchecked) -> None:
        self._kill("SIGTERM")
        if not checked_wait(lambda seconds: self.wait(seconds) is not None, grace_s, check):
            self._kill("SIGKILL")
            if self.wait(KILL_WITHIN_S) is None:
                raise RuntimeUnavailable(f"{self._name} does not end when killed")

    def follow(self, log: LogWriter) -> Follower:
        return StreamFollower(self._engine, self._id, self._name, log).start()

    def remove(self) -> None:
        self.leave()
        remove_container(self._engine, self._id)

    def _kill(self, signal_name: str) -> None:
        self._stopping = True
        try:
            with self._engine.answering(KILLS_WITHIN_S) as api:
                api.kill(self._id, signal_name)
            self._killed = signal_name == "SIGKILL"
        except NotFound:
            return
        except APIError as error:
            if error.status_code != requests.codes.conflict:  # conflict: it does not run any more
                raise RuntimeUnavailable(f"{self._name} cannot be stopped: {explain(error)}") from error

    def _look(self) -> None:
        self._watch.wake.clear()
        self._look_at = monotonic() + LOOK_AT_LEAST_S
        try:
            with self._engine.answering(ANSWERS_WITHIN_S) as api:
                details = api.inspect_container(self._id)
        except NotFound:
            self._exit = Exit(None, self.now())
        else:
            self._started_at = instant(details["State"]["StartedAt"])
            if details["State"]["Status"] in ENDED:
                self._exit = self._read_exit(details)
        if self._exit is not None:
            self._deaths.unwatch(self._id, self._watch)

    def _read_exit(self, details: dict[str, Any]) -> Exit:
        state = details["State"]
        code = int(state["ExitCode"])
        finished_at = instant(state["FinishedAt"])
        oom: bool | None = bool(state["OOMKilled"])
        if not oom and code == SIGKILLED and details["HostConfig"]["Memory"] and not self._killed:
            oom = self._has_oom_event(finished_at) or None  # the engine can fail to notice it
        error = one_line(state.get("Error") or "") or self._init_failure(code)
        signalled = self._was_signalled(finished_at)
        by_others = self._outside(code, signalled)
        return Exit(
            code, finished_at, oom, error, detail=by_others, outside=bool(by_others), signalled=signalled
        )

    @property
    def _ended_unseen(self) -> bool:
        return self._found_ended or (self._watch.interrupted and not self._watch.died)

    def _was_signalled(self, finished_at: datetime) -> bool:
        """Whether anybody but this watcher has told it to end: an earlier watcher, say, at its time limit."""
        if self._stopping or not (self._found or self._ended_unseen):
            return self._watch.stopped
        return self._watch.stopped or any(
            map(stops, self._events("kill", until=int(finished_at.timestamp()) + 1))
        )

    def _outside(self, code: int, signalled: bool) -> str:
        """Who ended it if neither it did nor this watcher, in words; empty where that is not known."""
        if self._stopping:
            return ""
        if self._ended_unseen and (signalled or code in ENGINE_CODES) and not self._watch.stopped:
            return ENDED_UNSEEN
        return STOPPED if signalled else ""

    def _has_oom_event(self, finished_at: datetime) -> bool:
        """Whether the engine reports that memory ran out, if need be a moment after the end.

        The flag in the state is set only where that report was faster than the end itself. On
        engine 20.10 it was missing from 6 of 120 such ends, all of which had the event; about
        one in a hundred has neither, and is told as a failure by SIGKILL that may be this.
        """
        return any(self._events("oom", until=int(finished_at.timestamp()) + OOM_WITHIN_S))

    def _events(self, kind: str, until: int) -> Iterator[Mapping[str, Any]]:
        """What the engine remembers, and what comes until its clock has passed ``until`` (in seconds)."""
        with self._engine.answering(TELLS_WITHIN_S) as api:
            events = api.events(
                since=int(self.started_at.timestamp()),
                until=until,
                filters={"container": [self._id], "event": [kind]},
                decode=True,
            )
            try:
                yield from events
            finally:
                cut(events)

    def _init_failure(self, code: int) -> str:
        """What the container's init says where it could not start the command, or empty.

        To the engine such a container has started; the exit code alone is a shell's "not found".
        """
        if code not in (126, 127):
            return ""
        with self._engine.answering(ANSWERS_WITHIN_S) as api:
            tail = api.logs(self._id, stdout=False, stderr=True, tail=3)
        lines = [line for line in bytes(tail).splitlines() if line.startswith(INIT_FAILURE)]
        return (
            "cannot start: " + one_line(lines[-1].partition(b"] ")[2].decode(errors="replace"))
            if lines
            else ""
        )


def remove_container(engine: Engine, container: str) -> bool:
    """Remove it, killed first where it runs; whether there was one. ``container``: its name or id."""
    try:
        with engine.answering() as api:
            api.remove_container(container, force=True, v=True)
    except NotFound:
        return False
    except APIError as error:
        if error.status_code != requests.codes.conflict:  # conflict: its removal is under way
            raise RuntimeUnavailable(f"{container} cannot be removed: {explain(error)}") from error
    return True
