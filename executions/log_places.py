"""Where the output of an attempt lies: in a shared folder, in Redis or in the archive.

the attempt has ended    the folder, where it is whole there; else the archive; else as below
it goes on               the folder or Redis, whichever has more of it; else the archive
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from typing import Generic, TypeVar
from uuid import UUID

from django.conf import settings

from containers.logs import LogLimit, LogStore
from containers.logs.output import Output
from containers.logs.tracks import FileTrack, OutputTrack, Track
from executions.live_logs import LiveLogs
from executions.log_archive import log_archive
from executions.models import Execution
from executions.states import State
from executions.store import Store, StoreUnavailable, hasty_store
from scheduler_project.kernel.errors import NotFound

_T = TypeVar("_T")


def log_store() -> LogStore:
    half = settings.PUNCTUAL_LOG_LIMIT_BYTES // 2
    return LogStore(settings.PUNCTUAL_LOG_DIR, LogLimit(head=half, tail=half))


def live_logs(store: Store) -> LiveLogs | None:
    """None where nothing is shipped: web and workers share PUNCTUAL_LOG_DIR."""
    most = settings.PUNCTUAL_LOG_LIVE_BYTES
    return LiveLogs(store, most) if most else None


@dataclass(frozen=True, slots=True)
class _Forms(Generic[_T]):
    """In which form the output is wanted: from a place where it is whole, from live files, or from Redis."""

    whole: Callable[[Output], _T]
    files: Callable[[LogStore, UUID, int], _T]
    live: Callable[[LiveLogs, tuple[UUID, int]], _T]


def _track_in_files(store: LogStore, execution_id: UUID, attempt: int) -> Track:
    files = store.files(execution_id, attempt)
    if not (files.head.exists() or files.notes.exists()):
        raise NotFound(f"there is no log of execution {execution_id}, attempt {attempt}")
    return FileTrack(files)


_OUTPUTS: _Forms[Output] = _Forms(lambda output: output, LogStore.output, LiveLogs.output)
_TRACKS: _Forms[Track] = _Forms(OutputTrack, _track_in_files, LiveLogs.track)


def track_of(execution: Execution, attempt: int) -> Track | None:
    """What there is now of an attempt's output, for whoever follows it; None where there is nothing (yet).

    ArchiveUnavailable: try again later.
    """
    return _found(execution, attempt, _TRACKS)


def output_of(execution: Execution, attempt: int) -> Output | None:
    """What is shown of an attempt's output now; None where there is nothing. ArchiveUnavailable as above."""
    return _found(execution, attempt, _OUTPUTS)


def _found(execution: Execution, attempt: int, forms: _Forms[_T]) -> _T | None:
    store, ended = log_store(), _has_ended(execution, attempt)
    if ended and store.files(execution.id, attempt).ended.exists():
        with suppress(NotFound):  # it has just been archived
            return forms.whole(store.output(execution.id, attempt))
    if ended:
        with suppress(NotFound):
            return forms.whole(log_archive().output(execution.id, attempt))
    live = live_logs(hasty_store())
    shipped = _shipped(live, execution, attempt)
    if ended and shipped is None:  # forgotten, perhaps, as what has been archived just now
        with suppress(NotFound):
            return forms.whole(log_archive().output(execution.id, attempt))
    with suppress(NotFound):
        return _live(store, live, shipped, (execution.id, attempt), forms)
    with suppress(NotFound):
        return forms.whole(log_archive().output(execution.id, attempt))
    return None


def _shipped(live: LiveLogs | None, execution: Execution, attempt: int) -> int | None:
    """How many bytes of output Redis knows of; None where it knows nothing of it."""
    if live is not None:
        with suppress(StoreUnavailable):
            return live.written((execution.id, attempt))
    return None


def _live(
    store: LogStore, live: LiveLogs | None, shipped: int | None, attempt: tuple[UUID, int], forms: _Forms[_T]
) -> _T:
    """From whoever has more of it. NotFound: nobody has any."""
    if live is None or shipped is None:
        return forms.files(store, *attempt)
    try:
        if store.files(*attempt).written() >= shipped:
            return forms.files(store, *attempt)
    except (NotFound, FileNotFoundError):
        pass
    return forms.live(live, attempt)


def _has_ended(execution: Execution, attempt: int) -> bool:
    going_on = execution.state == State.ACTIVE and attempt >= execution.attempt
    return not going_on
