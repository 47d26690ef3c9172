"""Held runs, as causes: what they need leave from (pure)."""

from __future__ import annotations

from datetime import datetime

from executions.diagnosis.facts import Cause, Code, Facts, length_text
from executions.states import Trigger


def needed_leave(facts: Facts, now: datetime) -> Cause:
    if facts.trigger is Trigger.BACKFILL:
        return _backfill(facts)
    if facts.trigger is Trigger.CATCH_UP:
        return _catch_up(facts, now)
    return _behind_run(facts)


def _behind_run(facts: Facts) -> Cause:
    if not facts.others:
        return Cause(Code.WAITS_FOR_RUN, "The run that it waited for has ended; it starts in a moment.")
    first = facts.others[0]
    return Cause(
        Code.WAITS_FOR_RUN,
        f"It waits until run {first.id} of its job has ended ({first.state}), by the job's overlap rule.",
        "Cancel that run to have this one earlier, or let the job's runs overlap (overlap: allow).",
        runs=facts.others,
    )


def _backfill(facts: Facts) -> Cause:
    most = facts.most_active or 1
    if len(facts.others) >= most:
        return Cause(
            Code.WAITS_FOR_RUN,
            f"Its backfill runs {most} at once, and {len(facts.others)} are under way.",
            runs=facts.others,
            facts={"maxActive": most, "underWay": len(facts.others)},
        )
    return _rate(facts, "It is a backfill")


def _catch_up(facts: Facts, now: datetime) -> Cause:
    if facts.turned_away_at is not None:
        waited = length_text(now - facts.turned_away_at)
        return Cause(
            Code.CATCH_UP_GAP,
            f"It makes up for a missed time: it has waited {waited} for a gap between its job's runs.",
            "After 10 minutes it is given up. Shorter runs, or overlap: allow, make room.",
            runs=facts.others,
        )
    if facts.others:
        first = facts.others[0]
        return Cause(
            Code.WAITS_FOR_RUN,
            f"It makes up for a missed time, after run {first.id} of its job ({first.state}).",
            runs=facts.others,
        )
    return _rate(facts, "It makes up for a missed time")


def _rate(facts: Facts, what: str) -> Cause:
    limits = facts.catch_up
    if limits is None:
        return Cause(Code.CATCHING_UP, f"{what}: such runs start at a limited rate.")
    numbers = {"rate": limits.rate, "most": limits.most, "underWay": limits.under_way}
    if limits.under_way >= limits.most:
        return Cause(
            Code.CATCH_UP_LIMIT,
            f"{what}: {limits.most} such runs of all jobs may be under way, and {limits.under_way} are.",
            "PUNCTUAL_CATCHUP_ACTIVE raises this limit.",
            facts=numbers,
        )
    return Cause(
        Code.CATCHING_UP,
        f"{what}: such runs start at {limits.rate} a second at most; its turn comes.",
        facts=numbers,
    )
