"""The import of a partner's file, which fails for as long as the file is not there or is cut off.

The partner writes ``<feed>`` and then ``<feed>.sha256``, whose first word is the file's SHA-256 in hex.
PARAM_FEED names the file (default ``incoming/partner_orders.csv``). Exit codes: 0 the file is whole; 3 it
is missing or does not match its checksum, which a later attempt may find mended.
"""

from __future__ import annotations

import csv
import hashlib
import os
import sys
from pathlib import Path

DEFAULT_FEED = "incoming/partner_orders.csv"
NOT_IMPORTABLE = 3


def main(feed: Path, attempt: str) -> int:
    """Check the file and count its rows; the exit code says whether it is whole."""
    print(f"import of {feed}, attempt {attempt}", flush=True)
    try:
        content = read_verified(feed)
        rows = list(csv.reader(content.decode("utf-8").splitlines(), strict=True))
    except FileNotFoundError as error:
        print(f"error: there is no {error.filename}: the partner has not delivered it yet", file=sys.stderr)
        return NOT_IMPORTABLE
    except (OSError, ValueError, csv.Error) as error:
        print(f"error: cannot import {feed}: {error}", file=sys.stderr)
        return NOT_IMPORTABLE
    print(f"{feed} is whole: {len(content):,} bytes, {max(len(rows) - 1, 0):,} rows below the header")
    return 0


def read_verified(feed: Path) -> bytes:
    """The content of ``feed``; OSError where it or its checksum is missing, ValueError where they differ."""
    content = feed.read_bytes()
    words = Path(f"{feed}.sha256").read_text(encoding="ascii").split()
    expected = words[0].lower() if words else "nothing"
    actual = hashlib.sha256(content).hexdigest()
    if actual != expected:
        raise ValueError(
            f"its SHA-256 is {actual}, {feed}.sha256 says {expected}: cut off, or still being written"
        )
    return content


if __name__ == "__main__":
    sys.exit(
        main(Path(os.environ.get("PARAM_FEED") or DEFAULT_FEED), os.environ.get("PUNCTUAL_ATTEMPT") or "1")
    )
