"""The output of runs on a terminal or in a pipe, at once or while it grows."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from typing import Any

from executions.followed_rows import FollowedRows
from executions.log_archive import ArchiveUnavailable
from executions.log_following import IDLE_S, Follower, Kind, Place, Told, begun_attempt, place_of_tail
from executions.models import Execution
from executions.states import State
from scheduler_project.operating.command import OperatorCommand

MAX_TAIL = 100_000


def follow(execution: Execution, place: Place, tell: Callable[[Told], None]) -> dict[str, Any]:
    """Tell what comes from ``place`` on, until the run has ended; how it ended (log_following.Kind.END).

    While the archive or the database does not answer it waits.
    """
    rows = FollowedRows()
    with rows.following(execution):
        follower = Follower(rows, execution, place)
        while True:
            try:
                told, pause = follower.step()
            except ArchiveUnavailable:
                told, pause = [], IDLE_S
            for each in told:
                if each.kind is Kind.END:
                    return each.body
                tell(each)
            time.sleep(pause)


def follow_log(command: OperatorCommand, run: Execution, attempt: int | None, tail: int | None) -> bool:
    """Write what ``run`` puts out until it has ended; whether it completed normally.

    With ``--json``: a line of JSON for each event, as those of REST's ``?follow=true``.
    """
    first = attempt or begun_attempt(run)
    place = Place(first) if tail is None else place_of_tail(run, first, tail)
    end = follow(run, place, lambda told: _tell(command, told))
    if command.as_json:
        command.stdout.write(json.dumps({"event": str(Kind.END), **end}))
    else:
        said = f" ({end['message']})" if end.get("message") else ""
        command.tell(f"{run.id}: {end['status'] or 'gone'}{said}")
    return bool(end["status"] == State.COMPLETED_NORMALLY)


def _tell(command: OperatorCommand, told: Told) -> None:
    if command.as_json:
        command.stdout.write(json.dumps({"event": str(told.kind), **told.body}))
    elif told.kind is Kind.GAP:
        command.tell(f"bytes {told.body['from']} to {told.body['to']} are left out")
    elif told.kind is Kind.ATTEMPT:
        command.tell(f"attempt {told.body['attempt']}")
    else:
        command.write_output(told.body["text"].encode())
    command.stdout.flush()
