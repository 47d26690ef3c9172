"""Beats and workers, as they say of themselves in Redis."""

from __future__ import annotations

from collections.abc import Iterator

from django.conf import settings
from django.db.models import Count
from django.db.utils import Error as DatabaseError

from executions.beats import living_beats, owners_of
from executions.presence import PresentWorker, present_workers
from executions.store import default_store
from jobs.models import Job
from scheduler_project.doctor.findings import Finding, failure, ok, warning
from scheduler_project.operating.words import counted

START_BEAT = "Start one: 'celery -A scheduler_project beat'. Nothing that is due is sent before."


def check_beats() -> Iterator[Finding]:
    store, shards = default_store(), range(settings.PUNCTUAL_SHARDS)
    beats, owners = living_beats(store), owners_of(store, shards)
    if not beats:
        yield failure("alive", "No beat is alive.", START_BEAT)
    else:
        yield ok("alive", f"{counted(len(beats), 'beat')}: {', '.join(sorted(beats))}.")
    free = sorted(shard for shard, owner in owners.items() if owner is None)
    strangers = sorted({owner for owner in owners.values() if owner is not None} - set(beats))
    if free and beats:
        told = f"{counted(len(free), 'shard')} of {len(owners)} {'is' if len(free) == 1 else 'are'} nobody's."
        todo = (
            "Look again in a few seconds (PUNCTUAL_BEAT_LEASE); if it stays so, the beats run with another"
            " PUNCTUAL_SHARDS than this process."
        )
        yield failure("shards", told, todo)
    elif strangers:
        told = f"A beat that is not there any more still has shards: {', '.join(strangers)}."
        yield warning("shards", told, "Wait for PUNCTUAL_BEAT_LEASE: others take them then.")
    elif beats:
        yield ok("shards", f"All {len(owners)} have an owner.")


def check_workers() -> Iterator[Finding]:
    workers = present_workers(default_store())
    if not workers:
        todo = "Start one: 'celery -A scheduler_project worker'. What is sent waits in its queue."
        yield failure("alive", "No worker is alive.", todo)
    else:
        slots, busy = sum(worker.slots for worker in workers), sum(worker.busy or 0 for worker in workers)
        yield ok("alive", f"{counted(len(workers), 'worker')}, {busy} of {slots} slots taken.")
        if busy >= slots:
            todo = "Start more workers, or raise PUNCTUAL_WORKER_SLOTS, where that lasts."
            yield warning("slots", "All slots are taken: what is due waits.", todo)
    yield from _on_queues(workers)


def _on_queues(workers: list[PresentWorker]) -> Iterator[Finding]:
    """Each queue that jobs name has a worker."""
    try:
        named = dict(
            Job.objects.filter(archived_at=None, paused_at=None)
            .values_list("queue")
            .annotate(jobs=Count("id"))
            .order_by("queue")
        )
    except DatabaseError:  # it has findings of its own
        return
    heard = {queue for worker in workers for queue in worker.queues}
    for queue in sorted(named.keys() - heard):
        told = f"{counted(named[queue], 'job')} name the queue {queue!r}, and no worker listens on it."
        todo = f"Start one: 'celery -A scheduler_project worker -Q {queue}', or change these jobs."
        yield failure("queues", told, todo)
    if named.keys() <= heard:
        yield ok("queues", "Each queue that jobs name has a worker.")
