"""Idempotency keys: names that callers give their requests (pure)."""

from __future__ import annotations

import re

from scheduler_project.kernel.errors import InvalidFields

MAX_KEY = 255
_KEY = re.compile(r"[\x21-\x7e]{1,255}")


def read_key(text: str) -> str:
    """An idempotency key as it may be. InvalidFields otherwise."""
    if not _KEY.fullmatch(text):
        raise InvalidFields(
            {"Idempotency-Key": [f"1 to {MAX_KEY} visible ASCII characters are needed, no blanks."]}
        )
    return text
