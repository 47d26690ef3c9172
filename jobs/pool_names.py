"""What a pool may be called (pure)."""

from __future__ import annotations

import re

from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

POOL_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,62}", re.ASCII)


def pool_name(value: object, name: str) -> str:
    if not isinstance(value, str) or not POOL_NAME.fullmatch(value):
        raise InvalidValue(
            f"{shown(value)} is not a pool's name: 1 to 63 letters, digits, '.', '_' and '-',"
            " the first a letter or a digit.",
            field=name,
        )
    return value
