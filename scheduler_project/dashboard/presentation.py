"""How the overview reads in JSON, and with the same words ``manage.py status``."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from beat.overview import Beats
from executions.api.presentation import counts_json, time_text
from executions.bus.depths import QueueFacts
from executions.models import Execution
from executions.overview import BusyWorker, Flow, QueueState, Teams, Unstarted
from executions.presence import PresentWorker
from executions.tallies import Counts
from jobs.overview import JobTrouble
from scheduler_project.dashboard.overview import Overview


def overview_json(found: Overview) -> dict[str, Any]:
    system = found.system
    under_way = system.running if found.teams is None else _own(system.workers, found.teams)
    return {
        "at": time_text(found.at),
        "away": sorted(set(system.away)),
        "hour": hour_json(found.flow, found.unstarted, under_way),
        "obstacles": [item.sentence for item in found.obstacles],
        "notStarted": not_started_json(found.unstarted, system.present),
        "minutes": [_minute(at, counts) for at, counts in found.flow.minutes],
        **beats_json(system.beats),
        "workers": workers_json(system.workers, found.teams, known=system.workers_known),
        **queues_json(system.queues, system.system_queues),
        "failures": [_failure(item) for item in found.failures],
        "late": [_late(item) for item in found.late],
        "nextRuns": [{**_run(run), "dueAt": time_text(run.check_at)} for run in found.next_runs],
    }


def hour_json(flow: Flow, waiting: Collection[Unstarted], under_way: int) -> dict[str, Any]:
    return {
        **counts_json(flow.total),
        "overdue": flow.overdue,
        "notStarted": sum(item.runs for item in waiting),
        "running": under_way,
    }


def not_started_json(
    waiting: Iterable[Unstarted], present: Collection[PresentWorker] | None
) -> list[dict[str, Any]]:
    return [_unstarted(item, present) for item in waiting]


def beats_json(beats: Beats | None) -> dict[str, Any]:
    """None: whoever knows them does not answer."""
    return {
        "beats": beats and [{"name": name, "shards": shards} for name, shards in beats.shards.items()],
        "unownedShards": beats and beats.unowned,
    }


def workers_json(workers: Iterable[BusyWorker], teams: Teams, *, known: bool) -> list[dict[str, Any]]:
    """``known``: whether somebody knows which are there. Runs of other than ``teams`` are only counted."""
    return [_worker(item, teams, known=known) for item in workers]


def queues_json(queues: Iterable[QueueState] | None, own: Mapping[str, QueueFacts] | None) -> dict[str, Any]:
    """None: the broker does not answer."""
    return {
        "queues": None if queues is None else [_queue(item) for item in queues],
        "systemQueues": None
        if own is None
        else [{"queue": name, **_facts(facts)} for name, facts in own.items()],
    }


def _minute(at: datetime, counts: Counts) -> dict[str, Any]:
    return {"minute": time_text(at), **counts_json(counts)}


def _own(workers: list[BusyWorker], teams: Teams) -> int:
    return sum(_sees(run, teams) for item in workers for run in item.runs)


def _sees(run: Execution, teams: Teams) -> bool:
    return teams is None or run.owner_id in teams


def _worker(item: BusyWorker, teams: Teams, *, known: bool) -> dict[str, Any]:
    seen = [run for run in item.runs if _sees(run, teams)]
    return {
        "name": item.name,
        "present": item.worker is not None if known else None,
        "queues": list(item.worker.queues) if item.worker else None,
        "slots": item.worker.slots if item.worker else None,
        "running": [{**_run(run), "startedAt": time_text(run.started_at)} for run in seen],
        "runningOfOtherTeams": len(item.runs) - len(seen),
    }


def _run(run: Execution) -> dict[str, Any]:
    body = run.spec.body
    return {
        "executionId": str(run.id),
        "jobId": str(run.job_id),
        "jobName": body["job_name"],
        "owner": body["owner"],
    }


def _queue(item: QueueState) -> dict[str, Any]:
    return {
        "queue": item.queue,
        "priority": str(item.priority),
        **_facts(item.facts),
        "workers": item.workers,
    }


def _facts(facts: QueueFacts) -> dict[str, Any]:
    return {"waiting": facts.messages, "consumers": facts.consumers}


def _unstarted(item: Unstarted, present: Collection[PresentWorker] | None) -> dict[str, Any]:
    return {
        "queue": item.queue,
        "runs": item.runs,
        "since": time_text(item.since),
        "workers": None if present is None else sum(item.queue in worker.queues for worker in present),
    }


def _failure(item: JobTrouble) -> dict[str, Any]:
    trouble = item.trouble
    return {
        **_troubled(item),
        "reason": trouble.reason,
        "attempts": trouble.count,
        "runs": max(0, trouble.count - trouble.undone),
    }


def _late(item: JobTrouble) -> dict[str, Any]:
    return {
        **_troubled(item),
        "starts": item.trouble.count - item.trouble.undone,
        "notStarted": item.trouble.undone,
        "worstSeconds": round(item.trouble.worst_s, 3),
    }


def _troubled(item: JobTrouble) -> dict[str, Any]:
    return {
        "jobId": str(item.trouble.job_id),
        "jobName": item.job,
        "owner": item.owner,
        "latestExecutionId": str(item.trouble.latest),
    }
