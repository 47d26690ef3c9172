"""History: how fast an auditor appends the events of 20,000 runs, and what counting them costs.

Batches of 500 events, as the auditor takes them, each in a transaction of its own: runs of ten teams, due
within ten minutes, with JOB_QUEUED, JOB_STARTED and JOB_COMPLETED each, in the order in which they come.
Two ways in turns, over tables that are emptied before each:

* ``counted``: as it is, events a second.
* ``plain``: the INSERT of the history alone.
"""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.figures import Figure, progress
from tests.system import running_system

RUNS = 20_000
_APPEND = """
from datetime import timedelta
from django.db import connection, transaction
from executions.events import Event
from executions.history import append_history
from executions.states import EventType
from executions.transitions import insert
from scheduler_project.kernel.clock import monotonic, utcnow
from tests.integration.making import new_run, stored_spec

COLUMNS = ("execution_id", "id", "type", "attempt", "at", "worker", "reason", "message", "exit_code")
PLAIN = '''
INSERT INTO executions_executionevent
    (execution_id, id, type, attempt, at, worker, reason, message, exit_code)
SELECT * FROM unnest(%s::uuid[], %s::uuid[], %s::text[], %s::smallint[], %s::timestamptz[],
    %s::text[], %s::text[], %s::text[], %s::integer[]) ON CONFLICT DO NOTHING'''

def plain(events):
    items = sorted(events, key=lambda event: (event.execution_id, event.id))
    columns = [[str(value) if isinstance(value, str) else value
                for value in (getattr(item, name) for item in items)] for name in COLUMNS]
    with connection.cursor() as cursor:
        cursor.execute(PLAIN, columns)

spec, begin = stored_spec(), utcnow() - timedelta(minutes=20)
made = [new_run(spec, due=begin + timedelta(seconds=600 * n / runs), owner_id=n % 10) for n in range(runs)]
for start in range(0, runs, 5000):
    insert(made[start:start + 5000])
steps = [(EventType.QUEUED, 0.05, ""), (EventType.STARTED, 0.3, "w"), (EventType.COMPLETED, 20.0, "w")]
events = sorted((Event(type=kind, execution_id=run.id, attempt=1, worker=worker,
                       at=run.scheduled_for + timedelta(seconds=after))
                 for run in made for kind, after, worker in steps), key=lambda event: event.at)
batches = [events[start:start + 500] for start in range(0, len(events), 500)]

def timed(append):
    with connection.cursor() as cursor:
        cursor.execute("TRUNCATE executions_executionevent, executions_minute, executions_trouble")
        cursor.execute("CHECKPOINT")
    began = monotonic()
    for batch in batches:
        with transaction.atomic():
            append(batch)
    return len(events) / (monotonic() - began)

result = [[timed(plain), timed(append_history)] for _ in range(rounds + 1)]
"""


def measure(rounds: int) -> list[Figure]:
    with TemporaryDirectory() as home, running_system(Path(home)) as system:
        done = system.console.run(_APPEND, rounds=rounds, runs=RUNS)[1:]
    for plain, counted in done:
        progress(f"history: {counted:,.0f} events/s counted, {plain:,.0f} plain")
    return [
        Figure("history", "counted", "1/s", [counted for _, counted in done]),
        Figure("history", "plain", "1/s", [plain for plain, _ in done]),
        Figure("history", "counted_over_plain", "", [counted / plain for plain, counted in done]),
    ]
