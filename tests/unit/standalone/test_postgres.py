"""What the embedded PostgreSQL refuses before it starts. That it runs is in tests/e2e."""

from __future__ import annotations

import pytest

from scheduler_project.standalone.claims import Refused
from scheduler_project.standalone.postgres import PASSWORDS, Postgres


@pytest.fixture
def made(tmp_path, monkeypatch):
    """A home whose data folder is there."""
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))  # where sockets go that have a long path
    Postgres(tmp_path, tmp_path / "log")
    (tmp_path / "postgresql-data").mkdir()
    (tmp_path / "postgresql-data" / "PG_VERSION").write_text("18\n")
    return tmp_path


def test_data_of_another_version_is_refused_by_its_number(made):
    Postgres(made, made / "log").check()
    (made / "postgresql-data" / "PG_VERSION").write_text("17\n")
    with pytest.raises(Refused, match="is of PostgreSQL 17, the server of 18"):
        Postgres(made, made / "log").check()


def test_data_without_its_passwords_is_refused_each_time(made):
    (made / PASSWORDS).unlink()
    for _ in range(2):
        with pytest.raises(Refused, match=r"passwords\.json is gone"):
            Postgres(made, made / "log")


def test_no_server_is_left_over_where_the_note_names_a_process_that_is_none(made):
    postgres = Postgres(made, made / "log")
    assert postgres.left_over() == []
    (made / "postgresql-data" / "postmaster.pid").write_text("1\n/elsewhere\n")
    assert postgres.left_over() == []
    (made / "postgresql-data" / "postmaster.pid").write_text("")
    assert postgres.left_over() == []
