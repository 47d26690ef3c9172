"""From an entry of a crontab to a job: what can be carried over, and what cannot."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from jobs.crontabs.commands import PLAIN_SHELLS, escape_template, script_of
from jobs.crontabs.lines import Complaint, Crontab, Entry
from jobs.crontabs.naming import names_of
from jobs.crontabs.settings import Setting
from jobs.definitions import JobDefinition, read_definition, read_field
from scheduler_project.kernel.errors import InvalidFields, InvalidValue
from scheduler_project.kernel.texts import shown

LONGEST_DELAY_MINUTES = 24 * 60
_TERM = re.compile(
    r"(?:\*|(?:\d+|[A-Z]{3})-(?:\d+|[A-Z]{3}))(?:/\d+)?|\d+|[A-Z]{3}", re.ASCII | re.IGNORECASE
)
_NOT_IN_ENVIRONMENT = frozenset({"CRON_TZ", "RANDOM_DELAY", "SHELL", "LOGNAME", "USER"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Carriage:
    """What a crontab does not say. ``overlap`` and ``misfire``: cron starts a command beside the one that
    still runs, and makes up for nothing that it missed while it was down."""

    owner: str
    timezone: str = "UTC"
    name_prefix: str = ""
    overlap: str = "allow"
    misfire: str = "none"


@dataclass(frozen=True, slots=True)
class Carried:
    """``command``: as it stands in the crontab."""

    line: int
    command: str
    definition: JobDefinition


def carry_over(crontab: Crontab, carriage: Carriage) -> tuple[list[Carried], list[Complaint]]:
    """The jobs, and whatever cannot be carried over, both by line."""
    jobs: list[Carried] = []
    dropped = _dropped(crontab)
    complaints = [
        *crontab.complaints,
        *dropped.values(),
        *_on_settings(crontab, dropped),
        *_on_users(crontab),
    ]
    entries = [_without(entry, dropped) for entry in crontab.entries]
    for entry, name in zip(entries, names_of(entries, carriage.name_prefix), strict=True):
        if refusal := _refusal(entry):
            complaints.append(Complaint(entry.line, refusal))
            continue
        try:
            jobs.append(Carried(entry.line, entry.command, read_definition(_body(entry, name, carriage))))
        except InvalidFields as error:
            complaints += [Complaint(entry.line, text) for texts in error.errors.values() for text in texts]
            continue
        if entry.quiet:
            complaints.append(Complaint(entry.line, "The - in front (no syslog) has no counterpart."))
    return jobs, sorted(complaints, key=lambda complaint: complaint.line)


def _refusal(entry: Entry) -> str:
    """Why the entry becomes no job; empty where it becomes one."""
    if entry.times == "@reboot":
        return "@reboot is not carried over: there is no machine whose start it could follow."
    for part in [] if entry.times.startswith("@") else entry.times.split():
        if "~" in part:
            return (
                f"{part!r} is not carried over: a time that cron draws at random. "
                "Give a fixed time, and spread the jobs with jitter."
            )
        if bad := next((term for term in part.split(",") if not _TERM.fullmatch(term)), None):
            return f"{bad!r} in {entry.times!r} is not carried over: cron itself would refuse it."
    return ""


def _dropped(crontab: Crontab) -> dict[int, Complaint]:
    """The settings that no job can have, by their line: the entries below them go without."""
    settings = [setting for entry in crontab.entries for setting in entry.settings.values()]
    below = Counter(setting.line for setting in settings)
    dropped: dict[int, Complaint] = {}
    for setting in {setting.line: setting for setting in settings}.values():
        if refusal := _unusable(setting):
            entries = "1 entry" if below[setting.line] == 1 else f"{below[setting.line]} entries"
            text = f"{refusal} It is left out, and missing for {entries} below."
            dropped[setting.line] = Complaint(setting.line, text)
    return dropped


def _unusable(setting: Setting) -> str:
    """Why no job can have the setting; empty where one can."""
    if setting.name == "RANDOM_DELAY":
        return "" if _minutes(setting.value) is not None else _on_wrong_delay(setting)
    if setting.name in _NOT_IN_ENVIRONMENT or setting.name in _ON_SETTINGS_DROPPED:
        return ""
    try:
        read_field("env", {setting.name: escape_template(setting.value)})
    except InvalidValue as error:
        return error.message
    return ""


def _minutes(delay: str) -> int | None:
    within = delay.isascii() and delay.isdigit() and len(delay) < 10 and int(delay) <= LONGEST_DELAY_MINUTES
    return int(delay) if within else None


def _on_wrong_delay(setting: Setting) -> str:
    most = LONGEST_DELAY_MINUTES
    return f"RANDOM_DELAY is {shown(setting.value)}: it is a number of minutes from 0 to {most}."


def _without(entry: Entry, dropped: Mapping[int, Complaint]) -> Entry:
    kept = {name: setting for name, setting in entry.settings.items() if setting.line not in dropped}
    return replace(entry, settings=kept)


def _body(entry: Entry, name: str, carriage: Carriage) -> dict[str, Any]:
    """The job as the body of a REST request."""
    return {
        "name": name,
        "owner": carriage.owner,
        "description": _description(entry),
        "type": "Script",
        "command": escape_template(script_of(entry.command, entry.setting("SHELL"))),
        "env": _environment(entry),
        "schedule": {"cron": entry.times, "timezone": entry.setting("CRON_TZ") or carriage.timezone},
        "overlap": carriage.overlap,
        "misfire": carriage.misfire,
        "jitter": f"{_minutes(entry.setting('RANDOM_DELAY', '0'))}m",
    }


def _description(entry: Entry) -> str:
    user = f"In the crontab it ran as {entry.user}." if entry.user else ""
    return "\n".join(text for text in (entry.comment, user) if text)


def _environment(entry: Entry) -> dict[str, str]:
    carried = [
        setting
        for name, setting in entry.settings.items()
        if name not in _NOT_IN_ENVIRONMENT and name not in _ON_SETTINGS_DROPPED
    ]
    user = {"LOGNAME": entry.user, "USER": entry.user} if entry.user else {}
    return {**{setting.name: escape_template(setting.value) for setting in carried}, **user}


def _on_users(crontab: Crontab) -> Iterator[Complaint]:
    """Once for each user, at the first entry."""
    first = {entry.user: entry.line for entry in reversed(crontab.entries) if entry.user}
    for user, line in first.items():
        yield Complaint(line, f"It ran as {user}; a run has the user of its container or worker.")


def _on_settings(crontab: Crontab, dropped: Mapping[int, Complaint]) -> Iterator[Complaint]:
    """What there is to say of each setting that an entry has and keeps, once."""
    settings = {setting.line: setting for entry in crontab.entries for setting in entry.settings.values()}
    for setting in settings.values():
        told = {**_ON_SETTINGS, **_ON_SETTINGS_DROPPED}.get(setting.name)
        if setting.line not in dropped and told is not None and (text := told(setting)):
            yield Complaint(setting.line, text)


def _on_mail(setting: Setting) -> str:
    if not setting.value:
        return ""
    return (
        f"{setting.name}={setting.value} is not carried over: output is kept with each run, and not mailed."
    )


def _on_random_delay(setting: Setting) -> str:
    if not _minutes(setting.value):
        return ""
    return (
        f"RANDOM_DELAY={setting.value} becomes jitter: each job's delay is its own and stays the same, "
        "while cron draws one for all at its start."
    )


def _on_shell(setting: Setting) -> str:
    if setting.value in PLAIN_SHELLS:
        return ""
    return f"SHELL={setting.value}: the jobs start it; it has to be where they run."


def _on_home(setting: Setting) -> str:
    return f"HOME={setting.value} is set for the jobs, but a run starts in a folder of its own, not there."


def _on_zone(setting: Setting) -> str:
    return (
        f"TZ={setting.value} is set for the commands; as in cronie, it does not move the schedule "
        "(CRON_TZ and --timezone do)."
    )


def _on_user(setting: Setting) -> str:
    return f"{setting.name}={setting.value} is not carried over: cron overrides it."


def _on_security(setting: Setting) -> str:
    return f"{setting.name}={setting.value} is not carried over."


_Telling = Callable[[Setting], str]
_ON_SETTINGS: dict[str, _Telling] = {
    "RANDOM_DELAY": _on_random_delay,
    "SHELL": _on_shell,
    "HOME": _on_home,
    "TZ": _on_zone,
    "LOGNAME": _on_user,
    "USER": _on_user,
}
_ON_SETTINGS_DROPPED: dict[str, _Telling] = {
    "MAILTO": _on_mail,
    "MAILFROM": _on_mail,
    "CONTENT_TYPE": _on_mail,
    "CONTENT_TRANSFER_ENCODING": _on_mail,
    "MLS_LEVEL": _on_security,
}
