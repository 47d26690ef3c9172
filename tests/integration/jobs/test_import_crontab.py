"""``manage.py import_crontab``: shows what it will make, makes it, and makes it once."""

from __future__ import annotations

from io import BytesIO, StringIO, TextIOWrapper
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from executions.store import Store
from jobs.models import Job
from scheduler_project.kernel.texts import control_character

pytestmark = pytest.mark.django_db
TEXT = """# /etc/cron.d/shop
MAILTO=ops@example.com
CRON_TZ=Europe/Berlin

# Nightly backup
30 2 * * *  backup  /opt/backup.sh --to ${DEST:-/x} ${#y}
0 22 * * 1-5 joe    mail -s hello joe%Joe,%%Hello%
@reboot     root    /opt/start
"""


@pytest.fixture(autouse=True)
def parts(db: None, store: Store) -> None:
    """The command needs the database and Redis."""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    folder = tmp_path / "cron.d"
    folder.mkdir()
    found = folder / "shop"
    found.write_text(TEXT)
    return found


def run(path: Path | str, *options: str) -> str:
    out = StringIO()
    call_command("import_crontab", str(path), "--owner", "ops", *options, stdout=out)
    return out.getvalue()


def stored() -> list[dict[str, Any]]:
    return [dict(job) for job in Job.objects.order_by("name").values()]


def test_it_shows_what_it_will_make_and_makes_nothing(path: Path) -> None:
    said = run(path)
    assert "read as a system crontab (its path says so" in said
    assert "The team ops is not there and is made." in said
    assert "30 2 * * * Europe/Berlin" in said
    assert "At 02:30 (Europe/Berlin)" in said
    assert "02:30 comes twice, and it runs the first time only" in said
    assert "line 2: MAILTO=ops@example.com is not carried over" in said
    assert "line 8: @reboot is not carried over" in said
    assert "Nothing was changed: 2 to create, 0 to update, 0 to archive, 0 as they are." in said
    assert stored() == []


def test_applied_twice_it_makes_nothing_new(path: Path) -> None:
    assert "Done: 2 created, 0 updated, 0 archived, 0 as they are." in run(path, "--apply")
    backup, mail = stored()
    assert backup["name"].startswith("backup.sh-")
    assert backup["description"] == "Nightly backup\nIn the crontab it ran as backup."
    assert (backup["type"], backup["overlap"], backup["misfire"]) == ("Script", "allow", "none")
    assert mail["command"] == "{ mail -s hello joe\n} <<'CRON_STDIN'\nJoe,\n\nHello\nCRON_STDIN\n"

    assert "Done: 0 created, 0 updated, 0 archived, 2 as they are." in run(path, "--apply")
    assert stored() == [backup, mail]


def test_an_entry_at_another_time_is_the_same_job_shown_as_a_difference(path: Path) -> None:
    run(path, "--apply")
    before = stored()
    path.write_text(TEXT.replace("30 2 * * *", "45 3 * * *"))

    said = run(path, "--apply")

    assert "-  cron: 30 2 * * *" in said
    assert "+  cron: 45 3 * * *" in said
    assert "1 that differ were left as they are; --update changes them." in said
    assert stored() == before

    assert "1 updated" in run(path, "--apply", "--update")
    assert {job["name"]: job["schedule"]["cron"] for job in stored()} == {
        before[0]["name"]: "45 3 * * *",
        before[1]["name"]: "0 22 * * 1-5",
    }


def test_its_options_say_what_the_crontab_does_not(tmp_path: Path) -> None:
    path = tmp_path / "crontab"
    path.write_text("0 1 * * * run it\n")
    said = run(path, "--apply", "--timezone", "Asia/Tokyo", "--name-prefix", "cron ", "--overlap", "forbid")
    assert "read as a user crontab (assumed; --system" in said
    (job,) = stored()
    assert job["schedule"]["timezone"] == "Asia/Tokyo"
    assert job["name"].startswith("cron run-")
    assert (job["overlap"], job["command"]) == ("forbid", "run it")


def test_the_format_can_be_said(path: Path) -> None:
    assert "read as a user crontab (--user)" in run(path, "--user")


def test_a_crontab_comes_from_the_standard_input_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", TextIOWrapper(BytesIO(b"0 1 * * * run it\n")))
    assert "standard input: read as a user crontab" in run("-", "--apply")
    assert len(stored()) == 1


def test_what_a_crontab_holds_does_not_command_the_terminal(tmp_path: Path) -> None:
    path = tmp_path / "crontab"
    path.write_text("MAILTO=a\x1b[31m\n0 1 * * * run \x1b]0;x\x07 \x0b \u202e it\n\x1bnonsense\n")
    said = run(path)
    assert r"run \x1b]0;x\x07 \x0b \u202e it" in said
    assert "MAILTO=a\\x1b[31m is not carried over" in said
    assert control_character(said.replace("\n", "")) == ""


def test_a_job_that_is_not_the_crontabs_is_told_with_a_way_out_that_there_is(path: Path) -> None:
    run(path, "--apply")
    Job.objects.update(managed_by="")
    with pytest.raises(CommandError, match="rename it, or give these jobs a --name-prefix"):
        run(path)
    run(path, "--name-prefix", "cron ")


def test_an_empty_crontab_makes_nothing(tmp_path: Path) -> None:
    path = tmp_path / "crontab"
    path.write_text("# nothing\n")
    assert "Done: 0 created" in run(path, "--apply")


def test_what_cannot_be_read_is_told(tmp_path: Path) -> None:
    path = tmp_path / "crontab"
    path.write_bytes(b"0 1 * * * caf\xe9\n")
    with pytest.raises(CommandError, match="not UTF-8"):
        run(path)
    path.write_text("0 1 * * * run\n")
    with pytest.raises(CommandError, match=r"--timezone: .*Mars/Olympus"):
        run(path, "--timezone", "Mars/Olympus")


def test_a_crontab_that_is_not_there_is_not_said_to_be_read(tmp_path: Path) -> None:
    said = StringIO()
    with pytest.raises(CommandError, match="No such file"):
        call_command("import_crontab", str(tmp_path / "none"), owner="data", stdout=said)
    assert said.getvalue() == ""
