"""Names of jobs that were a crontab's entries: readable, and the same whenever the file is read again.

A name is the program's and six digits of a hash over user and command. So an entry whose time is changed
is the same job, and one whose command is changed is another: nothing else in a crontab tells them apart.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from hashlib import blake2b

from jobs.crontabs.lines import Entry

LONGEST_WORD = 60
_WRAPPERS = frozenset(
    {
        *("bash", "cd", "chronic", "dash", "env", "exec", "flock", "ionice", "ksh", "nice", "nocache"),
        *("node", "perl", "php", "python", "python3", "ruby", "setsid", "sh", "stdbuf", "sudo", "test"),
        *("time", "timeout", "zsh"),
    }
)


def names_of(entries: Iterable[Entry], prefix: str = "") -> list[str]:
    """One for each entry; the second of two that are equal but for their time ends in -2."""
    seen: Counter[str] = Counter()
    names = []
    for entry in entries:
        name = f"{prefix}{_program(entry.command)}-{_digits(entry)}"
        seen[name] += 1
        names.append(name if seen[name] == 1 else f"{name}-{seen[name]}")
    return names


def _program(command: str) -> str:
    """The first word that is neither a wrapper, an option, a folder to go to, nor punctuation."""
    before = ""
    for word in command.split():
        base = re.sub(r"[^\w.+-]", "", word.rstrip("/").rpartition("/")[2], flags=re.ASCII).strip(".+-")
        names_one = re.search(r"[A-Za-z]", base) and base not in _WRAPPERS
        if names_one and before != "cd" and "=" not in word and word[0] not in "-<>":
            return base[:LONGEST_WORD]
        before = word
    return "command"


def _digits(entry: Entry) -> str:
    return blake2b(f"{entry.user}\0{entry.command}".encode(), digest_size=3).hexdigest()
