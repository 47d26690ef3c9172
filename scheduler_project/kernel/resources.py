"""Hand-written SQL and Lua live in files; this reads them.

A ``.sql`` file holds one or more queries, each under a line ``-- name: query_name`` and a
line of comment that says what it is for. A ``.lua`` file is one script.
"""

from __future__ import annotations

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: *(\w+) *$", re.MULTILINE)


def read_text(package: str, path: str) -> str:
    """The text of a file that lies in ``package`` (dotted) at ``path``."""
    return files(package).joinpath(path).read_text(encoding="utf-8")


def read_queries(package: str, path: str) -> dict[str, str]:
    """The queries of a ``.sql`` file by name."""
    parts = _NAME.split(read_text(package, path))
    return {name: text.strip() for name, text in zip(parts[1::2], parts[2::2], strict=True)}
