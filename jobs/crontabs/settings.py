"""Environment lines of a crontab: ``NAME = value``, with the quotes that cron knows.

crontab(5), and ``load_env`` in cronie's env.c:

1. Blanks around ``=`` do not count, nor do those at the end of an unquoted value.
2. Name and value may each stand in a pair of ``'`` or ``"``. Nothing is escaped or expanded within,
   ``$HOME`` is four letters and a sign, and behind the closing quote there are only blanks.
3. A value that is empty needs its quotes: ``MAILTO=`` is not a setting, ``MAILTO=""`` is.
4. What is not a setting is tried as an entry.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

_SETTING = re.compile(
    r"""(?:(?P<q>['"])(?P<quoted_name>(?:(?!(?P=q))[^=])+)(?P=q)|(?P<name>[^\s='"][^\s=]*))
    \s*=\s*
    (?:(?P<v>['"])(?P<quoted_value>(?:(?!(?P=v)).)*)(?P=v)\s*|(?P<value>[^\s'"].*))""",
    re.VERBOSE,
)
_EMPTY = re.compile(r"""[A-Za-z_]\w*\s*=\s*""")


@dataclass(frozen=True, slots=True)
class Setting:
    name: str
    value: str
    line: int


def read_setting(line: str, number: int) -> Setting | None:
    """The setting in ``line``, which has no blanks in front; None for what is none."""
    match = _SETTING.fullmatch(line)
    if match is None:
        return None
    found = match.groupdict()
    name = found["quoted_name"] or found["name"]
    value = found["quoted_value"] if found["v"] else found["value"].rstrip()
    return Setting(name, value, number)


def is_empty_setting(line: str) -> bool:
    """``NAME=``, which cron refuses and people take for an empty value."""
    return _EMPTY.fullmatch(line) is not None
