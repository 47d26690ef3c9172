"""What cron hands to the shell, as the text of a Script.

crontab(5), and cronie's do_command.c: the first ``%`` that no backslash precedes ends the command; what
follows it is the command's standard input, with each further ``%`` a newline, and a newline at the
end. ``\\%`` is a plain ``%`` in both; every other backslash stays.
"""

from __future__ import annotations

import re
import shlex

PLAIN_SHELLS = ("", "sh", "/bin/sh", "/usr/bin/sh")
_PAIR = re.compile(r"\\.|%", re.DOTALL)
"""In the command backslashes are read in pairs: two of them and a percent sign are the end."""
_PERCENT = re.compile(r"\\?%")
_TEMPLATE = re.compile(r"\{[{%#]")


def split_input(text: str) -> tuple[str, str]:
    """The command, and its standard input; an empty text where it has none."""
    end = next((found.start() for found in _PAIR.finditer(text) if found[0] == "%"), len(text))
    command = _PAIR.sub(lambda found: "%" if found[0] == r"\%" else found[0], text[:end])
    given = _PERCENT.sub(lambda found: "%" if found[0] == r"\%" else "\n", text[end + 1 :])
    return command, given + "\n" if given and not given.endswith("\n") else given


def script_of(text: str, shell: str = "") -> str:
    """The script that does what cron would do with ``text`` under ``shell``."""
    command, given = split_input(text)
    if shell not in PLAIN_SHELLS:
        command = f"exec {shlex.quote(shell)} -c {shlex.quote(command)}"
    if not given:
        return command
    if command.endswith("\\"):  # it would join the line below
        command = f"sh -c {shlex.quote(command)}"
    word = "CRON_STDIN"
    while word in given.splitlines():
        word += "_"
    return f"{{ {command}\n}} <<'{word}'\n{given}{word}\n"


def escape_template(text: str) -> str:
    """The template that renders to ``text``: ``${#list}`` and ``{{.Names}}`` are none in a crontab."""
    return _TEMPLATE.sub(lambda found: f"{{{{ '{found[0]}' }}}}", text)
