"""One container of a Docker engine."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Any

import requests
from docker.errors import DockerException

from containers.docker.deaths import Deaths
from containers.docker.engine import APIError, Engine, NotFound, cut, explain
from containers.docker.manifest import instant
from containers.follow import Follower
from containers.logs import LogWriter
from containers.outcome import Exit, one_line
from containers.runtime import RuntimeUnavailable
from scheduler_project.kernel.clock import monotonic, utcnow

SAFETY_LOOK_S = 5.0
KILL_WITHIN_S = 30.0
RECONNECT_S = 0.5
SIGKILLED = 137
OOM_WITHIN_S = 4  # late by up to 0.4 s on two idle cores
INIT_FAILURE = b"[FATAL tini ("
RECENT_BYTES = 64 * 1024
PARTIAL_BYTES = 16 * 1024
CHECKED_LINES = 100


class DockerContainer:
    def __init__(self, engine: Engine, deaths: Deaths, details: dict[str, Any]) -> None:
        self._engine = engine
        self._deaths = deaths
        self._id = str(details["Id"])
        self._name = str(details["Name"]).lstrip("/")
        self._started_at = instant(details["State"]["StartedAt"])
        self._wake = deaths.watch(self._id)
        self._look_at = monotonic()
        self._exit: Exit | None = None
        self._killed = False

    @property
    def name(self) -> str:
        return self._name

    @property
    def started_at(self) -> datetime:
        return self._started_at

    def wait(self, timeout_s: float) -> Exit | None:
        deadline = monotonic() + timeout_s
        while self._exit is None:
            if self._wake.is_set() or monotonic() >= self._look_at:
                self._look()
                continue
            left = deadline - monotonic()
            if left <= 0:
                return None
            self._wake.wait(min(left, self._look_at - monotonic()))
        return self._exit

    def stop(self, grace_s: float) -> None:
        self._kill("SIGTERM")
        if self.wait(grace_s) is None:
            self._kill("SIGKILL")
            if self.wait(KILL_WITHIN_S) is None:
                raise RuntimeUnavailable(f"{self._name} does not end when killed")

    def follow(self, log: LogWriter) -> Follower:
        return _StreamFollower(self._engine, self._id, self._name, log).start()

    def remove(self) -> None:
        self._deaths.unwatch(self._id, self._wake)
        remove_container(self._engine, self._id)

    def _kill(self, signal_name: str) -> None:
        try:
            with self._engine.answering() as api:
                api.kill(self._id, signal_name)
            self._killed = signal_name == "SIGKILL"
        except NotFound:
            return
        except APIError as error:
            if error.status_code != requests.codes.conflict:  # conflict: it does not run any more
                raise RuntimeUnavailable(f"{self._name} cannot be stopped: {explain(error)}") from error

    def _look(self) -> None:
        self._wake.clear()
        self._look_at = monotonic() + SAFETY_LOOK_S
        try:
            with self._engine.answering() as api:
                details = api.inspect_container(self._id)
        except NotFound:
            self._exit = Exit(None, utcnow())
        else:
            if details["State"]["Status"] in ("exited", "dead"):
                self._exit = self._read_exit(details)
        if self._exit is not None:
            self._deaths.unwatch(self._id, self._wake)

    def _read_exit(self, details: dict[str, Any]) -> Exit:
        state = details["State"]
        code = int(state["ExitCode"])
        finished_at = instant(state["FinishedAt"])
        oom: bool | None = bool(state["OOMKilled"])
        if not oom and code == SIGKILLED and details["HostConfig"]["Memory"] and not self._killed:
            oom = self._has_oom_event(finished_at) or None  # the engine can fail to notice it
        error = one_line(state.get("Error") or "") or self._init_failure(code)
        return Exit(code, finished_at, oom, error)

    def _has_oom_event(self, finished_at: datetime) -> bool:
        """Whether the engine reports that memory ran out, if need be a moment after the end.

        The flag in the state is set only where that report was faster than the end itself. On
        engine 20.10 it was missing from 6 of 120 such ends, all of which had the event; about
        one in a hundred has neither, and is told as a failure by SIGKILL that may be this.
        """
        started, finished = int(self._started_at.timestamp()), int(finished_at.timestamp())
        with self._engine.answering() as api:
            # The engine ends this stream itself when its clock has passed "until".
            events = api.events(
                since=started,
                until=finished + OOM_WITHIN_S,
                filters={"container": [self._id], "event": ["oom"]},
            )
            try:
                return any(True for _ in events)
            finally:
                cut(events)

    def _init_failure(self, code: int) -> str:
        """What the container's init says where it could not start the command, or empty.

        To the engine such a container has started; the exit code alone is a shell's "not found".
        """
        if code not in (126, 127):
            return ""
        with self._engine.answering() as api:
            tail = api.logs(self._id, stdout=False, stderr=True, tail=3)
        lines = [line for line in bytes(tail).splitlines() if line.startswith(INIT_FAILURE)]
        return (
            "cannot start: " + one_line(lines[-1].partition(b"] ")[2].decode(errors="replace"))
            if lines
            else ""
        )


def remove_container(engine: Engine, container: str) -> None:
    """Remove it, killed first where it runs; idempotent."""
    try:
        with engine.answering() as api:
            api.remove_container(container, force=True, v=True)
    except NotFound:
        return
    except APIError as error:
        if error.status_code != requests.codes.conflict:  # conflict: its removal is under way
            raise RuntimeUnavailable(f"{container} cannot be removed: {explain(error)}") from error


def mend(frames: Iterable[bytes]) -> Iterator[bytes]:
    """The frames of an engine's log with the line ends that its "local" driver loses.

    A line beyond 16 KiB is kept in several entries, and engine 20.10 gives back the last of them
    without its newline. Such an entry is shorter than 16 KiB and ends in no newline; so is the
    end of an output without one, which nothing follows.
    """
    cut_off = False
    for frame in frames:
        yield b"\n" + frame if cut_off else frame
        cut_off = len(frame) < PARTIAL_BYTES and not frame.endswith(b"\n")


class _StreamFollower(Follower):
    """Reads the engine's log from the beginning and skips what is in the log already.

    Skipping by count, unlike asking for "since", neither doubles nor loses lines of one instant.
    A stream that ends may have been cut (by a restart of the engine, say). So when the container
    has ended, the engine's last lines are compared with the last bytes that were read; where they
    differ, the log is read once more as a whole.
    """

    def __init__(self, engine: Engine, container_id: str, name: str, log: LogWriter) -> None:
        super().__init__(name, log)
        self._engine = engine
        self._id = container_id
        self._stream: Any = None
        self._recent = bytearray()

    def _copy(self) -> None:
        while not self._cancelled.is_set():
            ended = self._ended.is_set()  # asked before reading: what is read afterwards is all there is
            try:
                self._copy_stream(follow=not ended)
                if ended or (self._ended.wait(RECONNECT_S) and self._is_complete()):
                    return
            except NotFound:
                return
            except RuntimeUnavailable:
                if ended:
                    raise
                self._ended.wait(RECONNECT_S)

    def _copy_stream(self, *, follow: bool) -> None:
        with self._engine.answering() as api:
            self._stream = api.logs(self._id, stdout=True, stderr=True, stream=True, follow=follow)
            skip = self._log.position
            for piece in mend(self._stream):
                if self._cancelled.is_set():
                    return
                self._remember(piece)
                fresh = piece[skip:]
                skip = max(0, skip - len(piece))
                if fresh:
                    self._log.write(fresh)

    def _remember(self, piece: bytes) -> None:
        self._recent += piece
        if len(self._recent) > 4 * RECENT_BYTES:
            del self._recent[:-RECENT_BYTES]

    def _is_complete(self) -> bool:
        with self._engine.answering() as api:
            frames = api.logs(
                self._id, stdout=True, stderr=True, stream=True, follow=False, tail=CHECKED_LINES
            )
            last = b"".join(mend(frames))
        return self._recent.endswith(last[-RECENT_BYTES:])

    def _interrupt(self) -> None:
        try:
            cut(self._stream)
        except DockerException as error:
            # Over SSH it cannot be cut; its thread ends with the container.
            self.error = self.error or str(error)
