"""Reads a crontab line by line, as cron does.

A setting holds for the entries below it. Each entry has the settings that stand above it, and the
comment that stands directly above. A line that cron would refuse is a complaint; the others go on.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import PurePath

from jobs.crontabs.settings import Setting, is_empty_setting, read_setting

MACROS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly", "@reboot")
_TIMES = re.compile(r"((?:\S+[ \t]+){4}\S+)(?:[ \t]+(.*))?")
_WORD = re.compile(r"(\S+)(?:[ \t]+(.*))?")
_NO_DESCRIPTION = re.compile(
    r"""(?i)m(?:in(?:ute)?)?\s+h(?:our)?\b   # the names of the columns
    |.*\bday\ of\ (?:the\ )?(?:month|week)\b
    |\||\.?--                                # the lines of a drawing that points at them
    |(?:[-\d*,/]+\s+){3}\S+\s+\S+\s+\S       # an entry that was put out of use
    |@[a-z]+\s+\S
    |[a-z_]\w*\s*=                           # and a setting
    """,
    re.VERBOSE,
)


class Format(StrEnum):
    """A user's crontab has no column for the user; the system's have one before the command."""

    USER = "user"
    SYSTEM = "system"


@dataclass(frozen=True, slots=True)
class Entry:
    """One line that starts a command. ``times``: five fields or a nickname; ``command``: as it stands."""

    line: int
    times: str
    command: str
    user: str = ""
    comment: str = ""
    quiet: bool = False
    settings: Mapping[str, Setting] = field(default_factory=dict)

    def setting(self, name: str, default: str = "") -> str:
        found = self.settings.get(name)
        return default if found is None else found.value


@dataclass(frozen=True, slots=True)
class Complaint:
    """What of a line cannot be carried over, or may surprise."""

    line: int
    text: str


@dataclass(frozen=True, slots=True)
class Crontab:
    entries: list[Entry]
    complaints: list[Complaint]


def format_of(path: str) -> Format:
    """The format of the file at ``path``: /etc/crontab and what lies in a cron.d have the user's column."""
    pure = PurePath(path)
    system = pure.parts[-2:] == ("etc", "crontab") or "cron.d" in pure.parts[:-1]
    return Format.SYSTEM if system else Format.USER


def read_crontab(text: str, format: Format) -> Crontab:
    """All entries, and a complaint for each line that is none, nor a setting, a comment or blank."""
    reader = _Reader(format)
    complaints = list(_on_endings(text))
    for number, line in enumerate(text.split("\n"), 1):
        complaints += reader.read(number, line.removesuffix("\r").lstrip(" \t"))
    return Crontab(reader.entries, complaints)


def _on_endings(text: str) -> Iterator[Complaint]:
    lines = text.split("\n")
    if lines[-1].strip():
        yield Complaint(len(lines), "The last line has no newline: cron itself does not read it.")
    if "\r\n" in text:
        first = next(number for number, line in enumerate(lines, 1) if line.endswith("\r"))
        yield Complaint(
            first, "Lines end in CR LF; cron takes the CR as part of the command, here it is dropped."
        )


class _Reader:
    def __init__(self, format: Format) -> None:
        self.entries: list[Entry] = []
        self._format = format
        self._settings: dict[str, Setting] = {}
        self._comments: list[str] = []

    def read(self, number: int, line: str) -> Iterator[Complaint]:
        if line.startswith("#"):
            self._comments.append(line)
            return
        comments, self._comments = self._comments, []
        if not line.strip():
            return
        if setting := read_setting(line, number):
            self._settings[setting.name] = setting
            return
        yield from self._read_entry(number, line, _joined(comments))

    def _read_entry(self, number: int, line: str, comment: str) -> Iterator[Complaint]:
        quiet = line.startswith("-")
        times, rest = _split_times(line[1:] if quiet else line)
        user, command = self._split_user(rest)
        if complaint := _refusal(line, times, user, command, self._format):
            yield Complaint(number, complaint)
            return
        self.entries.append(Entry(number, times, command, user, comment, quiet, dict(self._settings)))

    def _split_user(self, rest: str) -> tuple[str, str]:
        if self._format is Format.USER:
            return "", rest
        match = _WORD.fullmatch(rest)
        return (match[1], match[2] or "") if match else ("", "")


def _split_times(line: str) -> tuple[str, str]:
    """The time and what follows it; an empty time where there is none."""
    match = (_WORD if line.startswith("@") else _TIMES).fullmatch(line)
    return (" ".join(match[1].split()), match[2] or "") if match else ("", "")


def _refusal(line: str, times: str, user: str, command: str, format: Format) -> str:
    """Why cron would refuse the line; empty where it would not."""
    if is_empty_setting(line):
        return f'cron refuses {line.strip()!r}: an empty value is written in quotes, as "".'
    if not times:
        return f"{line!r} is neither a setting nor an entry: an entry has five fields and a command."
    if times.startswith("@") and times not in MACROS:
        return f"{times!r} is not known to cron: it is one of {', '.join(MACROS)}."
    if format is Format.SYSTEM and user and not command:
        return f"There is no command behind {user!r}: a system crontab has a user before the command."
    return "" if command.strip() else "There is no command."


def _joined(comments: list[str]) -> str:
    """The comment as a description: what stands behind the last line that is not meant to be one."""
    texts = [comment.lstrip("#").strip() for comment in comments]
    last = max((number for number, text in enumerate(texts) if _NO_DESCRIPTION.match(text)), default=-1)
    return "\n".join(text for text in texts[last + 1 :] if text)
