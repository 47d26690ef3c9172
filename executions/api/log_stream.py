"""The output of a run as server-sent events, under WSGI and ASGI; at most PUNCTUAL_LOG_FOLLOWERS a process,
of which one user has a quarter.

    id: 1-0-1234                     how far this event leads: attempt, bytes of notes, bytes of output
    data: {"attempt": 1, "from": 1200, "to": 1234, "text": "…"}

Output has no ``event:`` name, so that ``onmessage`` gets it; the others are those of log_following.Kind, and
``refused``.
"""

from __future__ import annotations

import asyncio
import json
import threading
from collections import Counter
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from http import HTTPStatus

from asgiref.sync import sync_to_async
from django.conf import settings
from django.core.handlers.asgi import ASGIRequest
from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from rest_framework.exceptions import APIException

from access.policy import User
from executions.api.followers_rights import refusal
from executions.followed_rows import FollowedRows, give_connection_back
from executions.log_archive import ArchiveUnavailable
from executions.log_following import IDLE_S, Follower, Kind, Place, Told
from executions.models import Execution
from scheduler_project.kernel.clock import monotonic

CONTENT_TYPE = "text/event-stream"
KEEPALIVE_S = 3.0
"""A client that went away is noticed when something is sent to it; until then it holds its place."""
LARGEST_SHARE = 4
"""One user has at most the LARGEST_SHARE-th part of the places, and at least one."""
LONGEST_S = 3600.0
"""Then a client comes again, by itself, and shows anew who it is."""
RETRY_MS = 2000
HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}

_rows = FollowedRows()
_followers = Counter[int | None]()  # of each user, by id
_counting = threading.Lock()
_leaving = threading.Event()


class TooManyFollowers(APIException):
    status_code = HTTPStatus.SERVICE_UNAVAILABLE
    default_detail = (
        "As many logs as this process may follow (PUNCTUAL_LOG_FOLLOWERS) are being followed."
        " Try again, or read the log without follow=true."
    )
    default_code = "too_many_followers"
    wait = 5.0


class TooManyOfOneUser(TooManyFollowers):
    default_detail = (
        "You follow as many logs as one user may in this process, a quarter of PUNCTUAL_LOG_FOLLOWERS."
        " Close one and try again, or read the log without follow=true."
    )


def leave() -> None:
    """This process is going to end: let every follower go, to come again to another."""
    _leaving.set()


def follow(
    request: HttpRequest, execution: Execution, place: Place, user: User
) -> HttpResponse | StreamingHttpResponse:
    """The stream from ``place`` on, for ``user``.

    TooManyFollowers; ArchiveUnavailable before anything is sent.
    """
    if place.ended:
        return HttpResponse(status=HTTPStatus.NO_CONTENT)  # a browser stops asking
    stream = _Stream(execution, place, user)
    content = _AsyncStream(stream) if isinstance(request, ASGIRequest) else stream
    return StreamingHttpResponse(content, content_type=CONTENT_TYPE, headers=HEADERS)


class _Stream(Iterator[bytes]):
    """Waits in the thread that asks for the next piece."""

    LOOK_AGAIN_S = 30.0
    """So often it is asked whether the user still may."""

    def __init__(self, execution: Execution, place: Place, user: User) -> None:
        self._kept = ExitStack()
        self._user, self._execution = user, execution
        self._look_at = monotonic() + self.LOOK_AGAIN_S
        self._over = False
        whose = getattr(user, "pk", None)
        _take_place(whose)
        self._kept.callback(_give_place_back, whose)
        try:
            self._kept.enter_context(_rows.following(execution))
            follower = Follower(_rows, execution, place)
            self._frames = _frames(follower, *follower.step())
            give_connection_back()  # what the request has used until here
        except BaseException:
            self.close()
            raise

    def __next__(self) -> bytes:
        while True:
            frame = self.next_frame()
            if frame is None:
                raise StopIteration
            if isinstance(frame, bytes):
                return frame
            _leaving.wait(frame)

    def next_frame(self) -> bytes | float | None:
        """The next piece, or the seconds to wait before there may be one, or None at the end."""
        if self._over or _leaving.is_set():
            return None
        if monotonic() >= self._look_at:
            self._look_at = monotonic() + self.LOOK_AGAIN_S
            if why := refusal(self._user, self._execution):
                self._over = True
                return f"event: refused\ndata: {json.dumps({'detail': why})}\n\n".encode()
        return next(self._frames, None)

    def close(self) -> None:
        self._kept.close()


class _AsyncStream(AsyncIterator[bytes]):
    """Waits in the event loop; looks in threads."""

    def __init__(self, stream: _Stream) -> None:
        self._stream = stream
        self._next = sync_to_async(stream.next_frame, thread_sensitive=False)

    async def __anext__(self) -> bytes:
        while True:
            frame = await self._next()
            if frame is None:
                raise StopAsyncIteration
            if isinstance(frame, bytes):
                return frame
            await asyncio.sleep(frame)

    def close(self) -> None:
        self._stream.close()


def _frames(follower: Follower, told: list[Told], pause: float) -> Iterator[bytes | float]:
    """Pieces of the stream, and pauses in seconds, until the run has ended."""
    began = spoken = monotonic()
    yield f"retry: {RETRY_MS}\n\n".encode()
    while monotonic() - began < LONGEST_S:
        if told:
            yield b"".join(map(_event, told))
            spoken = monotonic()
            if told[-1].kind is Kind.END:
                return
        elif monotonic() - spoken >= KEEPALIVE_S:
            yield b": keepalive\n\n"
            spoken = monotonic()
        if pause:
            yield pause
        try:
            told, pause = follower.step()
        except ArchiveUnavailable:
            told, pause = [], IDLE_S


def _event(told: Told) -> bytes:
    name = "" if told.kind is Kind.OUTPUT else f"event: {told.kind}\n"
    return f"{name}id: {told.place}\ndata: {json.dumps(told.body, ensure_ascii=False)}\n\n".encode()


def _take_place(whose: int | None) -> None:
    most = settings.PUNCTUAL_LOG_FOLLOWERS
    with _counting:
        if _followers.total() >= most:
            raise TooManyFollowers
        if _followers[whose] >= max(1, most // LARGEST_SHARE):
            raise TooManyOfOneUser
        _followers[whose] += 1


def _give_place_back(whose: int | None) -> None:
    with _counting:
        _followers[whose] -= 1
        if not _followers[whose]:
            del _followers[whose]
