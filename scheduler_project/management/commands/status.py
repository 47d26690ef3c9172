"""``manage.py status``: what runs where, what waits, and who is there."""

from __future__ import annotations

from django.core.management.base import CommandParser

from executions.bus.depths import QueueFacts
from executions.overview import BusyWorker
from scheduler_project.kernel.clock import utcnow
from scheduler_project.operating.command import OperatorCommand, Options
from scheduler_project.operating.exits import Exit
from scheduler_project.operating.standing import Standing, standing, standing_json
from scheduler_project.operating.tables import Column
from scheduler_project.operating.times import NONE, shown_seconds, since
from scheduler_project.operating.words import counted

MOST_RUNS = 20


class Command(OperatorCommand):
    help = (
        "What runs where, how late it is, how much waits in which queue, which beat owns which shards."
        " Exit statuses: docs/commands.md."
    )
    parts = ("DATABASE_URL", "REDIS_URL", "BROKER_URL")

    def add_arguments(self, parser: CommandParser) -> None:
        self.add_common(parser)

    def act(self, options: Options) -> Exit:
        found = standing(self.user(options), utcnow())
        if self.as_json:
            self.write_json(standing_json(found))
        else:
            self._write(found)
        if found.away:
            return Exit.UNAVAILABLE
        return Exit.REFUSED if any(each.stops for each in found.obstacles) else Exit.DONE

    def _write(self, found: Standing) -> None:
        self._write_flow(found)
        self._write_beats(found)
        self._write_workers(found)
        self._write_queues(found)
        self._write_runs(found)
        for message in dict.fromkeys(found.away.values()):
            self.stderr.write(message)
        self._write_conclusion(found)

    def _write_conclusion(self, found: Standing) -> None:
        self.stdout.write("")
        for each in found.obstacles:
            self.stdout.write(each.sentence, self.style.ERROR if each.stops else self.style.WARNING)
        if not found.obstacles and not found.away:
            self.stdout.write("Nothing keeps runs from starting.")

    def _write_flow(self, found: Standing) -> None:
        total = found.flow.total
        self.stdout.write(
            f"last hour  {total.due} due, {total.started} started, {total.completed} completed normally,"
            f" {total.abnormal} abnormally, {total.cancelled} cancelled, {total.skipped} skipped"
        )
        late = f"p50 {shown_seconds(total.late(0.5))}, p99 {shown_seconds(total.late(0.99))}"
        self.stdout.write(f"lateness   {late}")
        waiting = sum(each.runs for each in found.unstarted)
        told = f"{counted(waiting, 'run')} due and not started, {found.flow.overdue} of them not sent"
        where = ", ".join(f"{each.queue}: {each.runs}" for each in found.unstarted)
        self.stdout.write(
            f"overdue    {told}" + (f" ({where})" if where else ""), self.style.WARNING if waiting else None
        )

    def _write_beats(self, found: Standing) -> None:
        if found.beats is None:
            return
        told = [f"{name} ({counted(len(shards), 'shard')})" for name, shards in found.beats.shards.items()]
        self.stdout.write(f"beats      {', '.join(told) or 'none'}", None if told else self.style.ERROR)
        if found.beats.unowned:
            numbers = ", ".join(map(str, found.beats.unowned))
            self.stdout.write(f"           nobody owns the shards {numbers}", self.style.ERROR)

    def _write_workers(self, found: Standing) -> None:
        if not found.known:
            return
        if not found.workers:
            self.stdout.write("workers    none", self.style.ERROR)
            return
        self.stdout.write("")
        columns = (Column("WORKER", shrinks=True), Column("QUEUES", shrinks=True), Column("RUNS", right=True))
        styles = [None if each.worker else self.style.ERROR for each in found.workers]
        self.write_table(columns, [_worker_row(each) for each in found.workers], styles)

    def _write_queues(self, found: Standing) -> None:
        if found.queues is None or found.own is None:
            return
        self.stdout.write("")
        columns = (
            Column("QUEUE", shrinks=True),
            Column("WAIT", right=True),
            Column("CONSUMERS", right=True),
            Column("WORKERS", right=True),
        )
        rows = [
            (
                f"{each.queue} ({each.priority})",
                *_depth(each.facts),
                NONE if each.workers is None else each.workers,
            )
            for each in found.queues
            if each.facts.exists
        ]
        own = [(name, *_depth(facts), NONE) for name, facts in found.own.items()]
        self.write_table(columns, [*rows, *own])

    def _write_runs(self, found: Standing) -> None:
        if not found.under_way:
            return
        self.stdout.write("")
        columns = (
            Column("RUNNING"),
            Column("JOB", shrinks=True),
            Column("WORKER", shrinks=True),
            Column("FOR", right=True),
        )
        shown = found.under_way[:MOST_RUNS]
        left = {run.id for each in found.workers if found.known and each.worker is None for run in each.runs}
        rows = [
            (
                run.id if self.width is None else str(run.id)[:23],
                f"{run.spec.body['owner']}/{run.spec.body['job_name']}",
                f"gone: {run.worker}" if run.id in left else run.worker,
                shown_seconds(since(run.started_at, found.at)),
            )
            for run in shown
        ]
        self.write_table(columns, rows, [self.style.ERROR if run.id in left else None for run in shown])
        if len(shown) < len(found.under_way):
            self.stdout.write(
                f"and {len(found.under_way) - len(shown)} more: executions list --status Active"
            )


def _worker_row(each: BusyWorker) -> tuple[str, str, str]:
    if each.worker is None:
        return each.name or "(nobody knows)", "gone: others take its runs up", str(len(each.runs))
    return each.name, ", ".join(each.worker.queues), f"{len(each.runs)}/{each.worker.slots}"


def _depth(facts: QueueFacts) -> tuple[object, object]:
    return facts.messages, _or_none(facts.consumers)


def _or_none(number: int | None) -> object:
    return NONE if number is None else number
