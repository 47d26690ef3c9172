"""The broker: reachable; queues of the right type, and taken from; nothing dead, nothing piled up."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from urllib.parse import urlsplit

from django.conf import settings
from django.db.utils import Error as DatabaseError

from executions.attendance import attended, attending
from executions.bus.checkup import BrokerState, QueueState, broker_state
from executions.bus.connection import BusUnavailable
from executions.bus.topology import AUDITOR, DEAD, MAINTENANCE, RECORDER
from executions.store import StoreUnavailable, hasty_store
from jobs.models import Job
from scheduler_project.doctor.findings import Finding, away, failure, ok, unknown, warning
from scheduler_project.operating.words import counted

WITHIN_S = 2.0
MANY = 10_000
"""Messages that a recorder or an auditor takes some ten seconds for."""
LEAST_TIMEOUT_MS = 60_000
LOCAL = {"127.0.0.1", "localhost", "::1"}
_ENVIRONMENT = "{application:get_env(rabbit, consumer_timeout), rabbit_alarm:get_alarms()}."
_TIMEOUT = re.compile(r"\{ok,\s*(\d+)\}")
STARTED = {
    RECORDER: "Start a recorder: 'manage.py record_events'.",
    AUDITOR: "Start an auditor: 'manage.py audit_events'.",
    MAINTENANCE: "Start a maintenance worker: 'celery -A scheduler_project worker -Q maintenance'.",
}
WITHOUT = {
    RECORDER: "no state is written, no retry and no next run is made",
    AUDITOR: "the history waits",
    MAINTENANCE: "no partitions are made, and nothing old is dropped",
}


def check_broker() -> Iterator[Finding]:
    try:
        state = broker_state(run_queues(), WITHIN_S)
    except BusUnavailable as error:
        yield away(
            error.message,
            "Start the broker, or set BROKER_URL to where it is; nothing is sent or recorded meanwhile, and"
            " nothing is lost.",
        )
        return
    yield ok("reachable", f"{state.product} answers.")
    yield from on_queues(state, _attending())
    yield from _on_server()


def run_queues() -> list[str]:
    """Those that jobs name, and those that workers take from by the settings."""
    try:
        named = set(Job.objects.filter(archived_at=None).values_list("queue", flat=True).distinct())
    except DatabaseError:  # it has findings of its own
        named = set()
    return sorted(named | set(settings.PUNCTUAL_WORKER_QUEUES))


def _attending() -> dict[str, list[str]] | None:
    try:
        return attending(hasty_store()) if settings.REDIS_URL else None
    except StoreUnavailable:  # it has findings of its own
        return None


def on_queues(state: BrokerState, present: Mapping[str, list[str]] | None) -> Iterator[Finding]:
    """``present``: the recorders and auditors that say that they are there; None: nobody knows."""
    yield from _on_types(state.queues)
    facts = attended({queue.name: queue.facts for queue in state.queues}, present)
    by_name = {queue.name: replace(queue, facts=facts[queue.name]) for queue in state.queues}
    for name in STARTED:
        if name in by_name:
            yield _on_consumers(by_name[name])
    if DEAD in by_name:
        yield _on_dead(by_name[DEAD])


def _on_types(queues: Sequence[QueueState]) -> Iterator[Finding]:
    """Queues of runs are made when something is first sent to them, or a worker takes from them."""
    wrong = [queue for queue in queues if queue.complaint]
    for queue in wrong:
        told = f"The queue {queue.name!r} is not as this version makes it: {queue.complaint}"
        todo = f"Let it run empty, end who takes from it, delete it: 'rabbitmqctl delete_queue {queue.name}'."
        yield failure("queues", told, f"{todo} It is made anew, as a quorum queue.")
    missing = [queue.name for queue in queues if queue.name in (RECORDER, AUDITOR) and not queue.facts.exists]
    if missing:
        told = f"Not declared yet: {', '.join(missing)}. Events that are sent meanwhile reach nobody."
        yield failure("queues", told, " ".join(STARTED[name] for name in missing))
    if not wrong and not missing:
        there = sum(queue.facts.exists for queue in queues)
        yield ok("queues", f"{counted(there, 'queue')}, as this version makes them.")


def _on_consumers(queue: QueueState) -> Finding:
    check, facts = queue.name.removeprefix("punctual."), queue.facts
    told = f"{counted(facts.messages, 'message')} {'waits' if facts.messages == 1 else 'wait'}"
    if facts.consumers is None:
        told += "; over Redis nobody knows who takes from it."
        return warning(check, told, STARTED[queue.name]) if facts.messages > MANY else ok(check, told)
    if facts.consumers == 0:
        return failure(check, f"Nobody takes from it, so {WITHOUT[queue.name]}; {told}.", STARTED[queue.name])
    told += f", {counted(facts.consumers, 'consumer')}."
    if facts.messages > MANY:
        return warning(check, told, f"It is behind. {STARTED[queue.name]}")
    return ok(check, told)


def _on_dead(queue: QueueState) -> Finding:
    if not queue.facts.messages:
        return ok("dead_letters", "None.")
    told = f"{counted(queue.facts.messages, 'message')} that nobody could read or apply."
    return warning(
        "dead_letters",
        told,
        "Dead letters in the admin, or 'manage.py dead_letters', has them, with the reason.",
    )


def _on_server() -> Iterator[Finding]:
    """What only rabbitmqctl tells, on the broker's own host."""
    parts = urlsplit(settings.BROKER_URL)
    if parts.scheme not in ("pyamqp", "amqps"):
        return
    answer = _asked() if parts.hostname in LOCAL and (parts.port or 5672) == 5672 else ""
    found = _TIMEOUT.search(answer)
    if not answer:
        yield unknown(
            "timeout",
            "consumer_timeout is not visible from here; a minute is the least (RabbitMQ's default: 30).",
        )
        return
    if found and int(found[1]) < LEAST_TIMEOUT_MS:
        told = f"consumer_timeout is {int(found[1]) / 1000:g} s: what a recorder retries is taken from it."
        yield failure("timeout", told, "Set it to 1800000 (30 minutes) in rabbitmq.conf.")
    else:
        yield ok(
            "timeout", f"consumer_timeout is {int(found[1]) / 1000:g} s." if found else "No consumer_timeout."
        )
    if "resource_limit" in answer:
        todo = "Give it memory or disk: until then it takes no messages (rabbitmq-diagnostics alarms)."
        yield failure("alarms", "It is short of memory or disk.", todo)
    else:
        yield ok("alarms", "It is short of nothing.")


def _asked() -> str:
    """Empty where rabbitmqctl is not there or may not ask."""
    if shutil.which("rabbitmqctl") is None:
        return ""
    try:
        done = subprocess.run(
            ["rabbitmqctl", "--quiet", "eval", _ENVIRONMENT],
            capture_output=True,
            text=True,
            timeout=6,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout if done.returncode == 0 else ""
