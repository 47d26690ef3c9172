"""Crontabs are read by the rules of crontab(5) and cronie's sources, and carried over as far as can be."""

from __future__ import annotations

import subprocess
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.worker.sandbox import render_text
from jobs.crontabs.carrying import Carriage, carry_over
from jobs.crontabs.commands import escape_template, script_of, split_input
from jobs.crontabs.lines import Complaint, Entry, Format, format_of, read_crontab
from jobs.crontabs.naming import names_of
from jobs.crontabs.settings import is_empty_setting, read_setting
from jobs.definitions import JobDefinition

CARRIAGE = Carriage(owner="ops")


@pytest.mark.parametrize(
    ("line", "name", "value"),
    [
        ("SHELL=/bin/bash", "SHELL", "/bin/bash"),
        ("PATH = /bin:/usr/bin  ", "PATH", "/bin:/usr/bin"),
        ("A=b c  d", "A", "b c  d"),
        ("A='  b  '", "A", "  b  "),
        ('A="it\'s"   ', "A", "it's"),
        ("'A'=\"b\"", "A", "b"),
        ('"A B" = c', "A B", "c"),
        ('MAILTO=""', "MAILTO", ""),
        ("HOME=$HOME/x", "HOME", "$HOME/x"),
        ('A=b"c"', "A", 'b"c"'),
        ("A=b # no comment", "A", "b # no comment"),
        ("A==b", "A", "=b"),
    ],
)
def test_a_setting_is_read_with_cronies_quotes(line: str, name: str, value: str) -> None:
    setting = read_setting(line, 7)
    assert setting is not None
    assert (setting.name, setting.value, setting.line) == (name, value, 7)


@pytest.mark.parametrize(
    "line",
    [
        "MAILTO=",
        "A = ",
        "A='b",
        "A='b' c",
        "'A=b'",
        "0 2 * * * A=b run",
        "@daily A=b run",
        "*/5 * * * * x=1",
        "echo",
    ],
)
def test_what_cron_takes_for_no_setting_is_none(line: str) -> None:
    assert read_setting(line, 1) is None
    assert is_empty_setting(line) is (line in ("MAILTO=", "A = "))


def entries(text: str, format: Format = Format.USER) -> list[Entry]:
    crontab = read_crontab(text, format)
    assert crontab.complaints == []
    return crontab.entries


def test_an_entry_has_its_times_its_command_and_the_settings_above_it() -> None:
    first, second = entries("A=1\n  0\t2  *\t* 1-5   run  it \n\nA=2\nB=3\n@daily\tgo\n")
    assert (first.line, first.times, first.command) == (2, "0 2 * * 1-5", "run  it ")
    assert {name: item.value for name, item in first.settings.items()} == {"A": "1"}
    assert (second.line, second.times, second.command) == (6, "@daily", "go")
    assert {name: item.value for name, item in second.settings.items()} == {"A": "2", "B": "3"}


def test_a_system_crontab_has_a_user_before_the_command() -> None:
    plain, quiet = entries("0 2 * * * root  run it\n-@hourly joe go\n", Format.SYSTEM)
    assert (plain.user, plain.command, plain.quiet) == ("root", "run it", False)
    assert (quiet.user, quiet.times, quiet.command, quiet.quiet) == ("joe", "@hourly", "go", True)


@pytest.mark.parametrize(
    ("path", "format"),
    [
        ("/etc/crontab", Format.SYSTEM),
        ("/etc/cron.d/backup", Format.SYSTEM),
        ("backup/etc/cron.d/sysstat", Format.SYSTEM),
        ("/var/spool/cron/crontabs/joe", Format.USER),
        ("crontab", Format.USER),
        ("-", Format.USER),
    ],
)
def test_the_path_tells_the_format(path: str, format: Format) -> None:
    assert format_of(path) is format


def test_the_comment_directly_above_is_the_description() -> None:
    text = """# about the file

# Nightly backup
#   of the warehouse
0 2 * * * backup
0 3 * * * other
# m h  dom mon dow   command
#30 4 * * * disabled
0 5 * * * third
"""
    assert [entry.comment for entry in entries(text)] == ["Nightly backup\nof the warehouse", "", ""]


def test_the_drawing_of_the_columns_and_what_is_put_out_of_use_describe_nothing() -> None:
    text = """# Example of job definition:
# .---------------- minute (0 - 59)
# |  .------------- hour (0 - 23)
# |  |  |  |  |
# *  *  *  *  * user-name command to be executed
17 * * * * root first
#PATH=/bin
18 * * * * root second
# Old: #0 1 * * * root gone
#@daily root gone
# Kept
19 * * * * root third
"""
    assert [entry.comment for entry in entries(text, Format.SYSTEM)] == ["", "", "Kept"]


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("MAILTO=", "an empty value is written in quotes"),
        ("0 2 * * *", "There is no command"),
        ("0 2 * *", "neither a setting nor an entry"),
        ("@fortnightly run", "'@fortnightly' is not known to cron"),
        ("@Daily run", "'@Daily' is not known to cron"),
        ("@daily", "There is no command"),
    ],
)
def test_a_line_that_cron_refuses_is_a_complaint_and_the_others_go_on(line: str, part: str) -> None:
    crontab = read_crontab(f"0 1 * * * a\n{line}\n0 3 * * * b\n", Format.USER)
    assert [entry.command for entry in crontab.entries] == ["a", "b"]
    (complaint,) = crontab.complaints
    assert complaint.line == 2
    assert part in complaint.text


def test_a_system_entry_without_a_command_is_a_complaint() -> None:
    (complaint,) = read_crontab("0 2 * * * root\n", Format.SYSTEM).complaints
    assert "no command behind 'root'" in complaint.text


def test_endings_that_cron_trips_over_are_told() -> None:
    crontab = read_crontab("A=1\r\n0 1 * * * a\r\n0 2 * * * b", Format.USER)
    assert [entry.command for entry in crontab.entries] == ["a", "b"]
    assert sorted(complaint.line for complaint in crontab.complaints) == [1, 3]


@pytest.mark.parametrize(
    ("text", "command", "given"),
    [
        ("run", "run", ""),
        ("mail joe%Joe,%%Where?%", "mail joe", "Joe,\n\nWhere?\n"),
        ("cat%a", "cat", "a\n"),
        ("run%", "run", ""),
        (r"date +\%F", "date +%F", ""),
        (r"a\\%b", r"a\\", "b\n"),
        (r"a\x%b\%c\\%d\e", r"a\x", "b%c\\%d\\e\n"),
    ],
)
def test_percent_signs_are_read_as_cron_reads_them(text: str, command: str, given: str) -> None:
    assert split_input(text) == (command, given)


@pytest.mark.parametrize(
    ("text", "shell", "output"),
    [
        ("echo $((1 + 1))", "", "2\n"),
        ("cat%one%%two", "", "one\n\ntwo\n"),
        ("read a; cat; echo $a%one%two", "", "two\none\n"),
        ("cat%CRON_STDIN%$HOME `x`", "", "CRON_STDIN\n$HOME `x`\n"),
        ("cat # all of it%x", "", "x\n"),
        ("cat %x\\", "", "x\\\n"),
        ("cat - \\\\%x", "", "x\n"),
        ('a=(x y); echo ${#a[@]} "it\'s"', "/bin/bash", "2 it's\n"),
        ("cat <(cat)%x", "/bin/bash", "x\n"),
    ],
)
def test_the_script_does_what_cron_would_do(text: str, shell: str, output: str) -> None:
    done = subprocess.run(
        ["sh", "-c", script_of(text, shell)],
        check=False,
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
    )
    assert done.stdout == output


@given(st.text("{}%#'\" ab\n", max_size=20) | st.text(max_size=30))
def test_a_text_escaped_as_a_template_renders_to_itself(text: str) -> None:
    expected = text.replace("\r\n", "\n").replace("\r", "\n")
    assert render_text(escape_template(text), {}) == expected


def carried(text: str, format: Format = Format.USER, carriage: Carriage = CARRIAGE) -> Any:
    jobs, complaints = carry_over(read_crontab(text, format), carriage)
    return [job.definition for job in jobs], complaints


def only(text: str, format: Format = Format.USER) -> tuple[JobDefinition, list[Complaint]]:
    (job,), complaints = carried(text, format)
    return job, complaints


def test_an_entry_becomes_a_script_with_its_schedule_and_environment() -> None:
    job, complaints = only("PATH=/bin\n# Nightly\n30 2 * * mon-fri /opt/backup.sh --to ${X:-/x} ${#y}\n")
    assert job.type == "Script"
    assert job.owner == "ops"
    assert job.description == "Nightly"
    assert job.schedule.to_json()["cron"] == "30 2 * * MON-FRI"
    assert job.schedule.to_json()["timezone"] == "UTC"
    assert job.env == {"PATH": "/bin"}
    assert render_text(job.command, {}) == "/opt/backup.sh --to ${X:-/x} ${#y}"
    assert job.name.startswith("backup.sh-")
    assert (job.overlap, job.misfire.policy, job.jitter) == ("allow", "none", timedelta(0))
    assert complaints == []


def test_cron_tz_moves_the_schedule_and_tz_does_not() -> None:
    (before, zone, tz), complaints = carried(
        "0 1 * * * a\nCRON_TZ=Asia/Tokyo\n0 1 * * * b\nTZ=Europe/Paris\n0 1 * * * c\n"
    )
    assert [job.schedule.to_json()["timezone"] for job in (before, zone, tz)] == [
        "UTC",
        "Asia/Tokyo",
        "Asia/Tokyo",
    ]
    assert (zone.env, tz.env) == ({}, {"TZ": "Europe/Paris"})
    (complaint,) = complaints
    assert complaint.line == 4
    assert "does not move the schedule" in complaint.text


def test_a_random_delay_becomes_jitter() -> None:
    job, (complaint,) = only("RANDOM_DELAY=45\n0 1 * * * a\n")
    assert (job.jitter, job.env) == (timedelta(minutes=45), {})
    assert (complaint.line, "becomes jitter" in complaint.text) == (1, True)


def test_another_shell_runs_the_command() -> None:
    job, (complaint,) = only("SHELL=/bin/bash\n0 1 * * * echo ${x[0]}\n")
    assert job.command == "exec /bin/bash -c 'echo ${x[0]}'"
    assert complaint.line == 1


def test_the_user_of_an_entry_is_noted() -> None:
    job, (complaint,) = only("# Reports\n0 1 * * * joe a\n", Format.SYSTEM)
    assert job.description == "Reports\nIn the crontab it ran as joe."
    assert job.env == {"LOGNAME": "joe", "USER": "joe"}
    assert complaint == Complaint(2, "It ran as joe; a run has the user of its container or worker.")


@pytest.mark.parametrize(
    ("setting", "kept"),
    [
        ("MAILTO=a@b.c", {}),
        ("MAILFROM=a@b.c", {}),
        ("CONTENT_TYPE=text/html", {}),
        ("MLS_LEVEL=s0", {}),
        ("LOGNAME=x", {}),
        ("HOME=/srv", {"HOME": "/srv"}),
    ],
)
def test_what_a_setting_loses_is_told_once_with_its_line(setting: str, kept: dict[str, str]) -> None:
    (first, second), (complaint,) = carried(f"\n{setting}\n0 1 * * * a\n0 2 * * * b\n")
    assert first.env == second.env == kept
    assert complaint.line == 2


def test_no_mail_is_wanted_where_mailto_is_empty() -> None:
    assert only('MAILTO=""\n0 1 * * * a\n')[1] == []


@pytest.mark.parametrize(
    ("line", "part"),
    [
        ("@reboot run", "@reboot is not carried over"),
        ("0~59 3 * * * run", "'0~59' is not carried over: a time that cron draws at random"),
        ("5/15 * * * * run", "'5/15' in '5/15 * * * *' is not carried over"),
        ("0 0 L * * run", "cron itself would refuse it"),
        ("0 0 L-3 * * run", "cron itself would refuse it"),
        ("0 0 ? * * run", "cron itself would refuse it"),
        ("0 0 * * FRI#2 run", "cron itself would refuse it"),
        ("61 * * * * run", "'61' in the minute field"),
        ("0 0 31 2 * run", "never fires"),
    ],
)
def test_an_entry_that_cannot_be_carried_over_is_told_with_its_line(line: str, part: str) -> None:
    jobs, (complaint,) = carried(f"0 1 * * * a\n{line}\n")
    assert len(jobs) == 1
    assert complaint.line == 2
    assert part in complaint.text


def test_without_its_zone_an_entry_would_run_at_another_time() -> None:
    jobs, complaints = carried("CRON_TZ=Mars/Olympus\n0 1 * * * a\n")
    assert jobs == []
    assert 2 in [complaint.line for complaint in complaints]


@pytest.mark.parametrize(
    "setting",
    [
        *("RANDOM_DELAY=soon", "RANDOM_DELAY=1441", "RANDOM_DELAY=" + "9" * 5000, "A-B=1", "Ünï=x"),
        *('"F F"=x', "PUNCTUAL_X=1", "PARAM_X=1", "A=\0", "A=" + "x" * 70_000),
    ],
    ids=lambda setting: setting[:16],
)
def test_a_setting_that_no_job_can_have_is_told_once_and_costs_no_entry(setting: str) -> None:
    (first, second), (complaint,) = carried(f"B=2\n{setting}\n0 1 * * * a\n0 2 * * * b\n")
    assert (first.env, second.env, first.jitter) == ({"B": "2"}, {"B": "2"}, timedelta(0))
    assert complaint.line == 2
    assert complaint.text.endswith("It is left out, and missing for 2 entries below.")
    assert "jitter" not in complaint.text


def test_no_delay_becomes_no_jitter() -> None:
    assert only("RANDOM_DELAY=0\n0 1 * * * a\n")[1] == []


def test_all_of_cronies_example_is_carried_over() -> None:
    """The example of crontab(5)."""
    text = """# use /bin/sh to run commands, no matter what /etc/passwd says
SHELL=/bin/sh
# mail any output to `paul', no matter whose crontab this is
MAILTO=paul
#
CRON_TZ=Japan
# run five minutes after midnight, every day
5 0 * * *       $HOME/bin/daily.job >> $HOME/tmp/out 2>&1
# run at 2:15pm on the first of every month -- output mailed to paul
15 14 1 * *     $HOME/bin/monthly
# run at 10 pm on weekdays, annoy Joe
0 22 * * 1-5    mail -s "It's 10pm" joe%Joe,%%Where are your kids?%
23 0-23/2 * * * echo "run 23 minutes after midn, 2am, 4am ..., everyday"
5 4 * * sun     echo "run at 5 after 4 every sunday"
"""
    jobs, (mail,) = carried(text)
    assert mail.line == 4
    assert [job.name.rpartition("-")[0] for job in jobs] == ["daily.job", "monthly", "mail", "echo", "echo"]
    assert jobs[0].description == "run five minutes after midnight, every day"
    after = datetime(2027, 1, 1, tzinfo=UTC)
    assert jobs[0].schedule.next_fire(after) == datetime(2027, 1, 1, 15, 5, tzinfo=UTC)


@pytest.mark.parametrize(
    ("command", "word"),
    [
        ("/usr/local/bin/backup.sh --full", "backup.sh"),
        ("cd /srv/app && ./manage.py clearsessions", "manage.py"),
        ("A=1 /usr/bin/env python3 /opt/load.py", "load.py"),
        ("flock -n /tmp/x.lock true", "x.lock"),
        ("test -x /usr/sbin/anacron || run-parts /etc", "anacron"),
        ("[ 1 ]", "command"),
        ("$HOME/bin/daily.job", "daily.job"),
    ],
)
def test_a_name_begins_with_the_program(command: str, word: str) -> None:
    (name,) = names_of([Entry(1, "@daily", command)])
    assert name.rpartition("-")[0] == word


def test_a_name_stays_when_the_time_changes_and_differs_by_command_and_user() -> None:
    first = Entry(1, "@daily", "run")
    assert names_of([first]) == names_of([Entry(9, "0 1 * * *", "run")])
    others = [
        first,
        Entry(2, "@daily", "run it"),
        Entry(3, "@daily", "run", user="joe"),
        Entry(4, "@weekly", "run"),
    ]
    names = names_of(others, prefix="cron ")
    assert len(set(names)) == 4
    assert all(name.startswith("cron run-") for name in names)
    assert names[3] == f"{names[0]}-2"


PIECES = st.sampled_from([
    "0 2 * * *", "*/5 * * * *", "@daily", "@reboot", "-", "root", "A=", "CRON_TZ=UTC", "RANDOM_DELAY=5", "~",
    "L", "SHELL=/bin/bash", "'", '"', "%", r"\%", "\\", "#", "{{", "{%", "\n", "\r\n", " ", "\t", "\x00",
])  # fmt: skip


@given(st.lists(PIECES | st.text(max_size=5), max_size=20).map("".join), st.sampled_from(Format))
def test_any_text_is_read_and_each_entry_is_carried_over_or_told(text: str, format: Format) -> None:
    crontab = read_crontab(text, format)
    jobs, complaints = carry_over(crontab, CARRIAGE)
    told = {complaint.line for complaint in complaints}
    carried_over = {job.line for job in jobs}
    for entry in crontab.entries:
        assert entry.line in told | carried_over
