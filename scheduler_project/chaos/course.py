"""One chaos from its plan to its report."""

from __future__ import annotations

import json
import time
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from scheduler_project.chaos.driving import Driver, Tell
from scheduler_project.chaos.ledger import Key, Ledger
from scheduler_project.chaos.plan import SERVERS, Plan
from scheduler_project.chaos.system import ChaosSystem
from scheduler_project.chaos.verdict import Records, Verdict, judge, longest_gap_s, sendings, starts
from scheduler_project.kernel.clock import monotonic, utcnow
from scheduler_project.kernel.errors import PunctualError

LEAD = timedelta(seconds=5)
FAR = timedelta(days=1)
LEAD_A_JOB = timedelta(milliseconds=60)
PATIENCE_S = 180.0  # without any progress: longer than it takes until whatever was lost is sent again
CALM_S = 5.0  # after the last end: a second message of a run may be on its way yet
TURN_S = 0.05
LOOK_EVERY_S = 1.0
TELL_EVERY_S = 15.0


@dataclass(frozen=True, slots=True)
class Report:
    """``gaps_s``: by component, the longest time without a sign of its work, or without the server.

    ``evidence``: what Punctual knows of the runs that were lost, started twice or were not due.
    """

    plan: Plan
    verdict: Verdict
    gaps_s: dict[str, float]
    faults: dict[str, int]
    ended_alone: list[str]
    evidence: list[dict[str, Any]]


def run_chaos(system: ChaosSystem, plan: Plan, tell: Tell) -> Report:
    """Start the system, let the plan happen to it, wait until nothing is due any more, and judge."""
    ledger = Ledger(system.places.home / "ledger")
    system.start_all()
    system.wait_until_up()
    first = _make_jobs(system, plan, ledger)
    tell(
        f"{plan.runs} runs of {len(plan.jobs)} jobs, {len(plan.faults)} faults; from {first:%H:%M:%S} UTC on"
    )
    with closing(Records(system.places.database)) as records:
        course = Course(first, plan, Driver(system, plan, tell), ledger, records, tell)
        course.follow()
        return course.report(system)


def _make_jobs(system: ChaosSystem, plan: Plan, ledger: Ledger) -> datetime:
    """When the first is due: a whole second, later than the last job is made.

    How long that takes just now is seen by going through it once without making anything.
    """

    def bodies(first: datetime) -> list[dict[str, object]]:
        return [job.body(first, ledger.command(job.lasts_s)) for job in plan.jobs]

    began_at = monotonic()
    system.apply_jobs(bodies((utcnow() + FAR).replace(microsecond=0)), dry_run=True)
    lead = LEAD + LEAD_A_JOB * len(plan.jobs) + 2 * timedelta(seconds=monotonic() - began_at)
    first = (utcnow() + lead).replace(microsecond=0)
    system.apply_jobs(bodies(first))
    if utcnow() >= first:
        jobs = f"making {len(plan.jobs)} jobs took longer than {lead.total_seconds():.0f} s"
        raise PunctualError(f"{jobs}: the machine is too busy. Try again, or with fewer runs")
    return first


@dataclass(slots=True)
class Course:
    first: datetime
    plan: Plan
    driver: Driver
    ledger: Ledger
    records: Records
    tell: Tell
    _known: int = 0
    _moved_at: float = field(default_factory=monotonic)
    _told_at: float = field(default_factory=monotonic)

    def follow(self) -> None:
        """Until every run has ended, or nothing has gone on for long."""
        looked_at = 0.0
        while True:
            now_s = (utcnow() - self.first).total_seconds()
            self.driver.turn(now_s)
            if monotonic() - looked_at > LOOK_EVERY_S:
                looked_at = monotonic()
                self._look(now_s)
                if self.driver.over and now_s > self.plan.lasts_s and self._has_ended():
                    return
            time.sleep(TURN_S)

    def _has_ended(self) -> bool:
        quiet_s = monotonic() - self._moved_at
        complete = min(self.ledger.ended, self._known) >= self.plan.runs
        return quiet_s > (CALM_S if complete else PATIENCE_S)

    def _look(self, now_s: float) -> None:
        lines, before = self.ledger.read(), self._known
        self._known = self.records.ended()
        if lines or self._known > before or now_s < self.plan.lasts_s:
            self._moved_at = monotonic()
        if monotonic() - self._told_at > TELL_EVERY_S:
            self._told_at = monotonic()
            self.tell(f"{now_s:7.1f} s  {self.ledger.ended} have ended, {self._known} of them are recorded")

    def report(self, system: ChaosSystem) -> Report:
        known = self.records.runs()
        verdict = judge(self.plan.due(self.first), self.ledger.runs, known)
        return Report(
            self.plan,
            verdict,
            self._gaps_s(system),
            dict(self.driver.done),
            self.driver.ended_alone,
            self._evidence(verdict, known),
        )

    def _gaps_s(self, system: ChaosSystem) -> dict[str, float]:
        while_due = self.first, self.first + timedelta(seconds=self.plan.lasts_s)
        return {
            "beat": longest_gap_s(sendings(system.logs("beat")), *while_due),
            "worker": longest_gap_s(starts(self.ledger.runs), *while_due),
            "recorder": self.records.recorder_gap_s(*while_due),
            "auditor": self.records.auditor_gap_s(*while_due),
            **{server: self.driver.away.get(server, 0.0) for server in SERVERS},
        }

    def _evidence(self, verdict: Verdict, known: dict[Key, dict[str, Any]]) -> list[dict[str, Any]]:
        told = []
        for what in ("lost", "started_twice", "not_due"):
            for key in getattr(verdict, what):
                row, seen = known.get(key), self.ledger.runs.get(key)
                told.append(
                    {
                        "what": what,
                        "job": key[0],
                        "planned": key[1].isoformat(),
                        "starts": [at.isoformat() for at in seen.started] if seen else [],
                        "attempts": seen.attempts if seen else [],
                        "ends": seen.ended if seen else 0,
                        "row": row and {name: str(value) for name, value in row.items()},
                        "history": self.records.history(row["id"]) if row else [],
                    }
                )
        return told


def as_text(evidence: list[dict[str, Any]]) -> str:
    return json.dumps(evidence, indent=1)
