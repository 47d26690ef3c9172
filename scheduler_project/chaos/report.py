"""How a chaos is told: a few lines for people, or one JSON object."""

from __future__ import annotations

import json

from scheduler_project.chaos.course import Report
from scheduler_project.operating.words import counted


def as_json(report: Report) -> str:
    verdict = report.verdict
    return json.dumps(
        {
            "seed": report.plan.seed,
            "due": verdict.due,
            "started": verdict.started,
            "finished": verdict.finished,
            "lost": len(verdict.lost),
            "started_twice": len(verdict.started_twice),
            "latest_start_s": round(verdict.latest_start_s, 3),
            "not_due": len(verdict.not_due),
            "longest_gap_s": {name: round(gap, 1) for name, gap in report.gaps_s.items()},
            "faults": report.faults,
            "ended_by_themselves": report.ended_alone,
        }
    )


def as_lines(report: Report) -> list[str]:
    verdict = report.verdict
    twice = len(verdict.started_twice)
    lines = [
        f"seed           {report.plan.seed}",
        f"due            {verdict.due}",
        f"started        {verdict.started}",
        f"finished       {verdict.finished}",
        f"lost           {len(verdict.lost)}",
        f"started twice  {twice} ({twice / max(1, verdict.due):.3%}){_explained(report)}",
        f"latest start   {verdict.latest_start_s:.2f} s after its time",
        "longest gap    " + ", ".join(f"{name} {gap:.1f} s" for name, gap in report.gaps_s.items()),
        "faults         " + ", ".join(f"{name} {number}" for name, number in sorted(report.faults.items())),
    ]
    if verdict.not_due:
        lines.append(f"not due        {counted(len(verdict.not_due), 'run')} that nobody planned")
    if report.ended_alone:
        lines.append("ended          by themselves, and started again: " + ", ".join(report.ended_alone))
    return lines


def _explained(report: Report) -> str:
    verdict = report.verdict
    if not verdict.started_twice:
        return ""
    same = len(verdict.started_twice) - verdict.by_loss
    return f": {verdict.by_loss} as a later attempt, {same} as the same attempt"
