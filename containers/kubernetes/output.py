"""Copying a pod's log: by the node's time stamps, so that a broken stream neither doubles nor loses lines."""

from __future__ import annotations

from datetime import timedelta
from http import HTTPStatus

from containers.kubernetes.cluster import Cluster, Refused, Stream
from containers.kubernetes.feeds import Feeds, pods_path
from containers.kubernetes.merging import RUN
from containers.kubernetes.reading import Ended, Running
from containers.kubernetes.stamped import StampedOutput
from containers.logs import LogWriter
from containers.logs.follow import Follower
from containers.runtime import RuntimeUnavailable
from scheduler_project.kernel.backoff import exponential
from scheduler_project.kernel.clock import from_micros

RECONNECT_S = 0.2
FIRST_ROTATION_S = 10.0  # a node looks no more often than this whether a log has grown too long (its default)
GONE = "its pod was gone before all of it was read"
NO_POD = "its pod is gone, and with it what nobody had read"
BEGINS_LATE = (
    "the first of its output that its node has is of {0} s after its start; what came before, if any, is lost"
)
ROTATED = "its node had dropped the beginning before it was taken up; lines may be missing there, or be twice"


class PodFollower(Follower):
    """Reads the log as it grows, resumes it where it breaks off, and once more when the pod has ended.

    A stream that is silent is asked for anew, that a connection which died without a word is no end of
    it: after ``log_silence_s`` while the run goes on, after a few seconds when it has ended.
    """

    def __init__(
        self, cluster: Cluster, feeds: Feeds, seen: Running | Ended, name: str, log: LogWriter
    ) -> None:
        super().__init__(name, log)
        self._cluster = cluster
        self._path = f"{pods_path(feeds.namespace)}/{seen.pod}/log" if seen.pod else ""
        self._output = StampedOutput(skip=log.position)
        self._bridge = 0
        late = log.position == 0 and cluster.now() - seen.started_at > timedelta(seconds=FIRST_ROTATION_S)
        self._late_after = seen.started_at if late else None
        self._stream: Stream | None = None
        self._followed: Stream | None = None

    def _copy(self) -> None:
        if not self._path:
            raise RuntimeUnavailable(NO_POD)
        # Anew where the log could not be written.
        self._output = StampedOutput(skip=self._log.position, kept=self._log.times())
        self._bridge = self._log.known
        if not self._read_all():
            raise RuntimeUnavailable(GONE)
        if self._output.rotated:
            raise RuntimeUnavailable(ROTATED)

    def _read_all(self) -> bool:
        """Read until the end, or until cancelled; False where the log was gone before its end was read."""
        delays, broken = exponential(RECONNECT_S, cap=5.0), False
        while not self._cancelled.is_set():
            ended = self._ended.is_set()  # asked before reading: what is read afterwards is all there is
            try:
                self._copy_stream(follow=not ended)
                if ended:
                    return not (broken and self._output.foreign)
                broken, delays = False, exponential(RECONNECT_S, cap=5.0)
            except Refused as refusal:
                if refusal.status == HTTPStatus.NOT_FOUND or ended:
                    return not broken
            except RuntimeUnavailable:
                broken = True
            (self._cancelled if ended else self._ended).wait(next(delays))
        return True

    def _copy_stream(self, *, follow: bool) -> None:
        query = {"container": RUN, "follow": follow, "timestamps": True}
        if (since := self._output.since()) is not None:
            query["sinceTime"] = since
        self._stream = stream = self._cluster.stream(self._path, self._cluster.options.log_silence_s, **query)
        self._followed = stream if follow else None
        for piece in stream.pieces():
            if self._cancelled.is_set():
                stream.cut()
                return
            self._write(self._output.take(piece))
        self._write(self._output.end())

    def _write(self, fresh: bytes) -> None:
        if not fresh:
            return
        if self._output.rotated and self._bridge:
            # In the place of what is kept already, and cannot be read again.
            self._log.write(bytes(self._bridge))
        self._bridge = 0
        self._tell_late_begin()
        self._log.write(fresh, self._output.stamps)

    def _tell_late_begin(self) -> None:
        """What was rotated away before anybody read it leaves no trace but the time of what is left."""
        begin, self._late_after = self._late_after, None
        if begin is None or self._output.begin is None:
            return
        late_s = (from_micros(self._output.begin) - begin).total_seconds()
        if late_s >= FIRST_ROTATION_S:
            self._log.note(BEGINS_LATE.format(round(late_s)))

    def _interrupt(self) -> None:
        if self._stream is not None:
            self._stream.cut()

    def _hasten(self) -> None:
        if (stream := self._followed) is not None:
            stream.cut()
