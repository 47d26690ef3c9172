"""Python inside a system under test: ``python -m tests.console``, with the system's environment.

One process for all that a test asks, since each start of Django takes over a second. A line of
input is a JSON pair of code and the names it finds; the answer is a line too: what the code left
in ``result``, or how it failed.
"""

from __future__ import annotations

import json
import sys
import traceback
from typing import Any

import django


def answer(line: str) -> dict[str, Any]:
    code, names = json.loads(line)
    try:
        exec(code, names)
    except Exception:
        return {"error": traceback.format_exc()}
    return {"result": names.get("result")}


if __name__ == "__main__":
    django.setup()
    for line in sys.stdin:
        sys.stdout.write(json.dumps(answer(line)) + "\n")
        sys.stdout.flush()
