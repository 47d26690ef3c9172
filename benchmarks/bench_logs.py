"""What the log of a run costs: megabytes (10^6 bytes) through the writer in a second of CPU time.

    python -m benchmarks.bench_logs [folder]

Lines of 100 bytes, with room for all of them. "pieces": 256 KiB at a time, as from a process. "lines": one at
a time with its own time, as from an engine. With secrets, each of three values has its own forms and none
occurs. Medians of seven rounds. ``folder``: where to write, a temporary folder by default.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time

from containers.logs import LogLimit, LogStore, LogWriter
from containers.logs.stamps import Stamp, Stream

ROUNDS = 7
LINE = (
    b"2026-12-24 INFO loaded 1,234 rows of the table orders, and wrote them to the warehouse as well.  \r\n"
)
SECRETS = ["correct-horse-battery-staple", "pä$$wörd/of+the=warehouse", "0123456789abcdef" * 8]
LIMIT = LogLimit(head=1 << 30, tail=1 << 30)
PIECE = LINE * (256 * 1024 // len(LINE))
Way = Callable[[LogWriter], int]


def pieces(writer: LogWriter) -> int:
    for _ in range(256):
        writer.write(PIECE)
    return 256 * len(PIECE)


def lines(writer: LogWriter) -> int:
    for number in range(100_000):
        writer.write(LINE, [Stamp(0, 1_700_000_000_000_000 + 2000 * number, Stream.STDOUT)])
    return 100_000 * len(LINE)


def speeds(folder: Path, way: Way, hidden: list[str]) -> Iterator[float]:
    for _ in range(ROUNDS):
        with tempfile.TemporaryDirectory(dir=folder) as place:
            writer = LogStore(Path(place), LIMIT).writer(uuid.uuid4(), 1, hidden)
            begin = process_time()
            count = way(writer)
            writer.close()
            yield count / (process_time() - begin) / 1e6


def main() -> None:
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else tempfile.gettempdir())
    for way in (pieces, lines):
        for name, hidden in (("no secret", []), ("three secrets", SECRETS)):
            rate = statistics.median(speeds(folder, way, hidden))
            print(f"{way.__name__:8} {name:15} {rate:8.1f} MB/s")  # noqa: T201


if __name__ == "__main__":
    main()
