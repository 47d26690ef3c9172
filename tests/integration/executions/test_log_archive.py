"""Logs of attempts that have ended: in a folder, and in an S3-compatible store over HTTP."""

from __future__ import annotations

import gzip
import os
import uuid
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from containers.logs import LogLimit, LogStore, due_day
from containers.logs.stamps import Stamp, Stream, stamped
from executions.log_archive import ArchiveUnavailable, LogArchive, LogFolder, log_archive
from executions.log_bucket import LogBucket
from executions.worker.log_keeping import LogKeeper
from scheduler_project.kernel.clock import to_millis
from scheduler_project.kernel.errors import NotFound

BEGIN = 1_700_000_000_000_000
BUCKET = "punctual-logs"


def run_id(due: datetime) -> uuid.UUID:
    return uuid.UUID(int=to_millis(due) << 80 | uuid.uuid4().int & (1 << 80) - 1)


ID = run_id(datetime(2026, 12, 24, tzinfo=UTC))


@pytest.fixture(scope="module")
def endpoint() -> Iterator[str]:
    server = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    server.start()
    host, port = server.get_host_and_port()
    yield f"http://{host}:{port}"
    server.stop()


@pytest.fixture
def bucket(endpoint: str, monkeypatch: pytest.MonkeyPatch, settings: Any) -> Any:
    """The archive that the settings name is a bucket, as a deployment says it."""
    given = {
        "ENDPOINT_URL": endpoint,
        "ACCESS_KEY_ID": "id",
        "SECRET_ACCESS_KEY": "key",
        "DEFAULT_REGION": "us-east-1",
    }
    for name, value in given.items():
        monkeypatch.setenv(f"AWS_{name}", value)
    made = boto3.resource("s3").Bucket(BUCKET)
    made.create()
    options = {"bucket_name": BUCKET, "location": "team/logs"}
    backend = {"BACKEND": "executions.log_bucket.LogBucket", "OPTIONS": options}
    settings.STORAGES = {**settings.STORAGES, "logs": backend}
    return made


@pytest.fixture(params=["folder", "bucket"])
def archive(request: pytest.FixtureRequest, tmp_path: Path) -> LogArchive:
    if request.param == "folder":
        return LogArchive(LogFolder(str(tmp_path / "archive")))
    request.getfixturevalue("bucket")
    return log_archive()


def written(folder: Path, attempt: int = 1, execution_id: uuid.UUID = ID, size: int = 1) -> LogStore:
    store = LogStore(folder, LogLimit(head=20_000, tail=20_000))
    writer = store.writer(execution_id, attempt)
    writer.note("pulling")
    writer.write(b"one\n" * size, [Stamp(0, BEGIN, Stream.STDOUT)])
    writer.write(b"two\xff\n" * size, [Stamp(0, BEGIN + 10**6, Stream.STDERR)])
    writer.finish()
    return store


def content(output: Any) -> bytes:
    return b"".join(output.pieces)


def with_times(output: Any) -> bytes:
    return b"".join(stamped(output.pieces, output.stamps()))


@pytest.mark.parametrize("size", [1, 20_000])
def test_what_was_shown_live_is_shown_from_the_archive_with_its_times(
    archive: LogArchive, tmp_path: Path, size: int
) -> None:
    store = written(tmp_path / "live", size=size)
    for _ in range(2):  # a second worker may do it again
        archive.keep(ID, 1, store.output(ID, 1))
    assert content(archive.output(ID, 1)) == content(store.output(ID, 1))
    shown = with_times(archive.output(ID, 1))
    assert shown == with_times(store.output(ID, 1))
    assert shown.endswith(b"2023-11-14T22:13:21.000000Z stderr two\xff\n")
    assert (b"left out here" in shown) == (size > 1)
    assert archive.attempts(ID) == [1]


def test_what_is_not_there_is_not_found_at_once(archive: LogArchive) -> None:
    other = run_id(datetime(2026, 12, 25, tzinfo=UTC))
    with pytest.raises(NotFound, match="attempt 7"):
        archive.output(other, 7)
    assert archive.attempts(other) == []


def test_days_are_removed_whole(archive: LogArchive, tmp_path: Path) -> None:
    days = [datetime(2026, 12, day, tzinfo=UTC) for day in (20, 21, 22)]
    runs = [run_id(day) for day in days]
    for run in runs:
        archive.keep(run, 1, written(tmp_path / "live", execution_id=run).output(run, 1))
    assert archive.forget_before(date(2026, 12, 22)) == ["2026-12-20", "2026-12-21"]
    assert [archive.attempts(run) for run in runs] == [[], [], [1]]
    assert archive.forget_before(date(2026, 12, 22)) == []


def test_the_objects_are_where_people_look_for_them(bucket: Any, tmp_path: Path) -> None:
    log_archive().keep(ID, 3, written(tmp_path, 3).output(ID, 3))
    keys = sorted(item.key for item in bucket.objects.filter(Prefix=f"team/logs/2026-12-24/{ID}/3."))
    assert keys == [f"team/logs/2026-12-24/{ID}/3{suffix}" for suffix in (".log.gz", ".times.gz")]
    raw = bucket.Object(keys[0]).get()["Body"].read()
    assert gzip.decompress(raw).endswith(b"one\ntwo\xff\n")


def test_only_its_owner_may_read_an_archive(tmp_path: Path) -> None:
    folder = tmp_path / "archive"
    LogArchive(LogFolder(str(folder))).keep(ID, 1, written(tmp_path / "live").output(ID, 1))
    modes = {path: path.stat().st_mode & 0o777 for path in (folder, *folder.rglob("*"))}
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items()), modes


class TestKeeping:
    def test_a_log_leaves_the_disk_when_it_is_in_the_archive(self, tmp_path: Path) -> None:
        store, archive = written(tmp_path / "live"), LogArchive(LogFolder(str(tmp_path / "archive")))
        shown, told = content(store.output(ID, 1)), []
        keeper = LogKeeper(store, archive, lambda *said: told.append(said)).start()
        keeper.put((ID, 1))
        keeper.put((ID, 2))  # it never wrote anything
        keeper.close()
        assert content(archive.output(ID, 1)) == shown
        assert told == [((ID, 1), 9)]
        assert not (tmp_path / "live" / due_day(ID) / str(ID)).exists()

    def test_of_a_run_that_said_nothing_nothing_can_be_elsewhere(self, tmp_path: Path) -> None:
        store, told = LogStore(tmp_path / "live"), list[object]()
        archive = LogArchive(LogFolder(str(tmp_path / "archive")))
        store.writer(ID, 1).finish()
        noted = store.writer(ID, 2)
        noted.note("it is pulled")
        noted.finish()
        keeper = LogKeeper(store, archive, lambda *said: told.append(said))
        keeper.put((ID, 1))
        keeper.put((ID, 2))
        keeper.run_once()
        assert store.ended() == []
        assert told == [((ID, 2), 0)]
        assert content(archive.output(ID, 1)) == b""
        assert archive.output(ID, 1).stamps() == []

    def test_while_the_archive_is_away_it_stays_and_is_tried_again(self, tmp_path: Path) -> None:
        """Also by another worker of the same disk, once the first one is gone."""
        store, place = written(tmp_path / "live"), tmp_path / "archive"
        place.write_bytes(b"no folder")
        archive = LogArchive(LogFolder(str(place)))
        keeper = LogKeeper(store, archive, lambda *_: None)
        keeper.put((ID, 1))
        assert 20 < keeper.run_once() <= 30
        assert store.ended() == [(ID, 1)]
        place.unlink()
        LogKeeper(store, archive, lambda *_: None).run_once()  # it ended too short a time ago to be left
        assert archive.attempts(ID) == []
        long_ago = store.files(ID, 1).ended.stat().st_mtime - 3600
        os.utime(store.files(ID, 1).ended, (long_ago, long_ago))
        LogKeeper(store, archive, lambda *_: None).run_once()
        assert archive.attempts(ID) == [1]
        assert store.ended() == []

    def test_a_store_that_is_away_is_named(self, monkeypatch: pytest.MonkeyPatch, bucket: Any) -> None:
        monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:1")
        away = LogArchive(LogBucket(BUCKET, "x"))
        with pytest.raises(ArchiveUnavailable, match="PUNCTUAL_LOG_ARCHIVE"):
            away.output(ID, 1)
