"""What finding the next fire costs.  Run it from the repository: python benchmarks/bench_schedules.py

Each figure is the median of seven rounds, in microseconds of CPU time, which other work on the machine
hardly touches.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from pathlib import Path
from statistics import median
from time import process_time
from timeit import repeat
from zoneinfo import ZoneInfo

from croniter import croniter
from cronsim import CronSim

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from jobs.schedules import Cron, CronRule, count_fires, parse_schedule
from jobs.schedules.evaluation import Evaluator, evaluator_of

BEGIN = datetime(2027, 3, 20, 12, 0, tzinfo=UTC)
ZONE = "Europe/Berlin"
MIXED = (
    *("* * * * *", "*/10 * * * *", "0 * * * *", "0 2 * * *", "30 2 * * *", "0 9-17 * * MON-FRI"),
    *("0 0 1 * *", "0 0 L * *", "0 0 * * FRI#2", "0 0 15W * *", "0 0 13 * FRI", "0 0 29 2 *"),
)
ROUNDS, CALLS, JOBS = 7, 2000, 10_000
FEW = 200  # of the other libraries, which need longer


def main() -> None:
    costs = {text: micros(partial(walk, CronRule(text, ZONE)), 1) / CALLS for text in MIXED}
    for text, cost in costs.items():
        report(f"next fire of {text}", cost)
    report("next fire, median of these", median(costs.values()))
    for name, walk_peer in (("cronsim", walk_cronsim), ("croniter", walk_croniter)):
        known = [text for text in MIXED if "W" not in text]  # croniter knows no W
        report(f"the same by {name}", median(micros(partial(walk_peer, text), 1) / FEW for text in known))
    report("reading a schedule seen before", micros(lambda: parse_schedule("0 2 * * *"), CALLS))
    report_ten_thousand()
    rule = Cron(CronRule("* * * * * *", ZONE))
    year = timedelta(days=365)
    report("counting a year of every second", micros(lambda: count_fires(rule, BEGIN, BEGIN + year), 100))


def walk(rule: CronRule) -> None:
    """From fire to fire with an evaluator of its own, so that no answer is shared."""
    evaluator, after = Evaluator(rule), BEGIN
    for _ in range(CALLS):
        after = evaluator.next_fire(after) or BEGIN


def walk_cronsim(text: str) -> None:
    for _ in islice(CronSim(text, BEGIN.astimezone(ZoneInfo(ZONE))), FEW):
        pass


def walk_croniter(text: str) -> None:
    fires = croniter(text, BEGIN.astimezone(ZoneInfo(ZONE)))
    for _ in range(FEW):
        fires.get_next(datetime)


def report_ten_thousand() -> None:
    """All jobs of one expression ask for what follows the fire that they share."""
    schedule = Cron(CronRule("0 2 * * *", ZONE))
    evaluations = evaluator_of(schedule.rule).evaluations
    spent = micros(lambda: [schedule.next_fire(BEGIN) for _ in range(JOBS)], 1)
    report(f"{JOBS:,} jobs on 0 2 * * *, all together", spent)
    report("evaluations for them, in all rounds", evaluator_of(schedule.rule).evaluations - evaluations)


def micros(call: Callable[[], object], number: int) -> float:
    return median(repeat(call, timer=process_time, number=number, repeat=ROUNDS)) / number * 1e6


def report(what: str, figure: float) -> None:
    sys.stdout.write(f"{what:45} {figure:10,.1f}\n")


if __name__ == "__main__":
    main()
