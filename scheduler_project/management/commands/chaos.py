"""``manage.py chaos``: kills processes and cuts connections while runs are due; says whether one was lost."""

from __future__ import annotations

import os
import secrets
import signal
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import mkstemp
from types import FrameType
from typing import Any

from django.core.management.base import CommandError, CommandParser

from executions.api.parameters import whole_number
from scheduler_project.chaos.course import Report, as_text, run_chaos
from scheduler_project.chaos.pace import possible_rate
from scheduler_project.chaos.plan import make_plan
from scheduler_project.chaos.report import as_json, as_lines
from scheduler_project.chaos.system import PREFIX, chaos_system, usual_broker
from scheduler_project.commands import TerminalCommand
from scheduler_project.kernel.errors import InvalidValue, PunctualError
from scheduler_project.kernel.texts import shown
from scheduler_project.operating.command import option
from scheduler_project.operating.exits import Exit

RUNS = (50, 1_000_000)
MINUTES = (0.25, 1440.0)
SEEDS = 2**32


class Command(TerminalCommand):
    help = (
        "Start a system in places of its own (a database, a virtual host, a namespace; on the servers of"
        " DATABASE_URL, REDIS_URL, BROKER_URL, or on the usual local ports; what is live there is not"
        " touched), let runs be due while processes are killed and stopped and connections cut and kept"
        " silent, and compare what should have run with what did. Exit status 0: nothing was lost; 1: it was."
    )
    requires_system_checks = ()

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--runs", type=option(whole_number(*RUNS), "runs"), default=2000, help="(2000)")
        parser.add_argument(
            "--minutes", type=option(_minutes, "minutes"), default=1.0, help="in which they are due (1)"
        )
        parser.add_argument(
            "--seed",
            type=option(whole_number(0, SEEDS - 1), "seed"),
            help="of the plan: the same runs, minutes and seed give the same faults",
        )
        parser.add_argument("--broker", choices=["rabbitmq", "redis"], help="(what BROKER_URL names)")
        parser.add_argument(
            "--keep", action="store_true", help="the folder with the logs and the ledger stays"
        )
        parser.add_argument(
            "--json", action="store_true", help="one JSON object, and nothing else, on stdout"
        )

    def handle(self, *_args: Any, **options: Any) -> None:
        try:
            with _told_to_end():
                report = self._run(options)
        except KeyboardInterrupt:
            raise SystemExit(int(Exit.INTERRUPTED)) from None
        except PunctualError as error:
            raise CommandError(error.message, returncode=Exit.UNAVAILABLE) from error
        if options["json"]:
            self.stdout.write(as_json(report))
        else:
            self.stdout.write("\n".join(as_lines(report)))
        if not report.verdict.holds:
            raise SystemExit(int(Exit.REFUSED))

    def _run(self, options: dict[str, Any]) -> Report:
        seed = secrets.randbelow(SEEDS) if options["seed"] is None else options["seed"]
        self._tell(f"seed {seed}")
        broker = options["broker"] or usual_broker()
        plan = make_plan(seed, options["runs"], self._possible_s(options["runs"], options["minutes"] * 60))
        with chaos_system(broker, keep=options["keep"]) as system:
            self._tell(f"over {broker}, in {system.places.namespace}, with its logs in {system.places.home}")
            report = run_chaos(system, plan, self._tell)
        self._keep(report)
        return report

    def _possible_s(self, runs: int, wanted_s: float) -> float:
        """What is wanted, or longer where this machine could not start so many."""
        rate = possible_rate()
        if runs / wanted_s <= rate:
            return wanted_s
        stretched_s = float(round(runs / rate))
        self._tell(
            f"{runs} runs in {wanted_s:g} s are {runs / wanted_s:.0f} a second; this machine can be asked for"
            f" {rate:.0f} just now: they are due within {stretched_s:g} s"
        )
        return stretched_s

    def _keep(self, report: Report) -> None:
        if not report.evidence:
            return
        descriptor, name = mkstemp(prefix=PREFIX, suffix=".json")
        os.close(descriptor)
        Path(name).write_text(as_text(report.evidence), encoding="utf-8")
        self._tell(f"what is known of the runs that were lost or started twice: {name}")

    def _tell(self, text: str) -> None:
        self.stderr.write(text, lambda text: text)


def _minutes(text: str, name: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not MINUTES[0] <= value <= MINUTES[1]:
        allowed = f"a number from {MINUTES[0]:g} to {MINUTES[1]:g}"
        raise InvalidValue(f"{shown(text)} is not {allowed}.", field=name)
    return value


@contextmanager
def _told_to_end() -> Iterator[None]:
    """SIGINT and SIGTERM end it, by a KeyboardInterrupt; one that follows does not disturb the clean-up."""
    numbers = (signal.SIGINT, signal.SIGTERM)

    def end(_number: int, _frame: FrameType | None) -> None:
        for number in numbers:
            signal.signal(number, signal.SIG_IGN)
        raise KeyboardInterrupt

    before = {number: signal.signal(number, end) for number in numbers}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
