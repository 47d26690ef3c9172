"""Limits on how many runs are under way at once: of a job, of a team, and named pools.

A pool with a team limits all runs of that team by itself; any other is one that jobs name. What is
limited stands here, in the database. What holds is in Redis (executions/pools.py), where a change is
written as soon as it is committed; the beats write what got lost on the way, or was changed by SQL.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any

from django.contrib.auth.models import Group
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError, Q, QuerySet

from access.levels import Level
from access.policy import User, no_team, require, require_permission, team_called, teams_seen_by
from executions.pools import Pools, Usage, job_pool, named_pool, send_called, team_pool
from executions.store import StoreUnavailable, default_store
from executions.window import Window
from jobs.models import Job, Pool
from jobs.pool_names import POOL_NAME
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import Conflict, InvalidFields, NotFound

logger = logging.getLogger(__name__)

MOST_SLOTS = 10_000


@dataclass(frozen=True, slots=True, kw_only=True)
class PoolDefinition:
    """``team``: whose runs it limits all by itself; empty: the runs of jobs that name it."""

    name: str
    slots: int
    team: str = ""
    description: str = ""


def definition_of(pool: Pool) -> PoolDefinition:
    return PoolDefinition(
        name=pool.name,
        slots=pool.slots,
        team=pool.team.name if pool.team else "",
        description=pool.description,
    )


def key_of(pool: Pool) -> str:
    """What Redis knows it by."""
    return named_pool(pool.name) if pool.team_id is None else team_pool(pool.team_id)


def visible_pools(user: User) -> QuerySet[Pool]:
    """Every pool that jobs may name, and those of the user's teams."""
    teams = teams_seen_by(user)
    pools = Pool.objects.select_related("team").order_by("name")
    return pools if teams is None else pools.filter(Q(team=None) | Q(team_id__in=teams))


def find_pool(name: str, user: User, *, lock: bool = False) -> Pool:
    """``lock``: nobody else changes it until the transaction ends."""
    pools = visible_pools(user).filter(name=name) if POOL_NAME.fullmatch(name) else Pool.objects.none()
    pool = (pools.select_for_update(of=("self",)) if lock else pools).first()
    if pool is None:
        raise NotFound(f"There is no pool {name!r}.")
    return pool


def pool_of_job(name: str, user: User) -> Pool | None:
    """The pool that a job names. InvalidFields where it cannot: also for one that ``user`` does not see."""
    if not name:
        return None
    pool = visible_pools(user).filter(name=name).first()
    if pool is None:
        known = ", ".join(Pool.objects.filter(team=None).order_by("name").values_list("name", flat=True)[:20])
        raise InvalidFields({"pool": [f"There is no pool {name!r}. There are: {known or 'none yet'}."]})
    if pool.team_id is not None:
        raise InvalidFields(
            {"pool": [f"The pool {name!r} limits the runs of a team by itself: leave it out."]}
        )
    return pool


def create_pool(definition: PoolDefinition, user: User) -> Pool:
    """Forbidden without the permission; Conflict: there is one of that name, or for that team.

    InvalidFields: no such team, in the same words whether there is none or ``user`` is not in it.
    """
    require_permission(user, "jobs.add_pool")
    pool = Pool(name=definition.name, **_columns(definition, user))
    require_pool(user, "add", pool.team)
    return save_pool(pool)


def update_pool(pool: Pool, definition: PoolDefinition, user: User) -> Pool:
    """Another limit holds at once: a higher one lets in who waits, a lower one stops nobody that runs."""
    require_pool(user, "change", pool.team)
    if definition.name != pool.name:
        raise InvalidFields(
            {"name": ["A pool keeps its name: make another one, and let the jobs name that."]}
        )
    if definition.team != (pool.team.name if pool.team else ""):
        raise InvalidFields({"team": ["A pool keeps its team: make another one."]})
    for name, value in _columns(definition, user).items():
        setattr(pool, name, value)
    return save_pool(pool)


def save_pool(pool: Pool) -> Pool:
    try:
        with transaction.atomic():
            pool.save()
    except IntegrityError as error:
        if "pool_of_team" in str(error):
            raise Conflict(f"The team {pool.team} has a pool already.") from error
        raise Conflict(f"There is a pool {pool.name!r} already.") from error
    publish_limit(key_of(pool), pool.slots)
    return pool


def delete_pool(pool: Pool, user: User) -> None:
    """Conflict while jobs name it."""
    require_pool(user, "delete", pool.team)
    key = key_of(pool)
    Job.objects.filter(pool=pool, archived_at__isnull=False).update(pool=None)
    try:
        with transaction.atomic():
            pool.delete()
    except ProtectedError as error:
        count = Job.objects.filter(pool=pool).count()
        raise Conflict(f"{count} jobs name the pool {pool.name!r}: change them first.") from error
    publish_limit(key, None)


def require_pool(user: User, what: str, team: Group | None) -> None:
    """Forbidden, unless ``user`` may add, change or delete pools, and is in the team that this one limits."""
    require_permission(user, f"jobs.{what}_pool")
    if team is not None:
        require(user, Level.EDIT, team)


def usage_of(pools: Sequence[Pool]) -> dict[str, Usage]:
    """How each is used now, by name; empty where Redis does not answer."""
    try:
        found = Pools(default_store(), timedelta(0)).usage([key_of(pool) for pool in pools])
    except StoreUnavailable:
        return {}
    return {pool.name: usage for pool, usage in zip(pools, found, strict=True)}


# --- limits on their way to Redis -----------------------------------------------------------------


def publish_limit(key: str, limit: int | None) -> None:
    """After the commit; who may come in by it does at once. Where Redis is away, the beats write it."""
    transaction.on_commit(partial(_publish, key, limit))


def publish_job_limit(job: Job) -> None:
    publish_limit(job_pool(job.id), None if job.archived_at is not None else job.max_active)


def _publish(key: str, limit: int | None) -> None:
    store = default_store()
    pools = Pools(store, timedelta(0))
    try:
        pools.set_limit(key, limit)
        send_called(pools, Window(store), pools.call(), utcnow())
    except StoreUnavailable as error:
        logger.warning("limit_late", extra={"pool": key, "limit": limit, "error": error.message})


def all_limits() -> dict[str, int]:
    """Every limit that there is, by what Redis knows its pool by."""
    jobs = Job.objects.filter(max_active__isnull=False, archived_at=None).values_list("id", "max_active")
    limits = {job_pool(job_id): int(limit) for job_id, limit in jobs if limit is not None}
    return limits | {key_of(pool): pool.slots for pool in Pool.objects.all()}


def write_changed(pools: Pools, known: Mapping[str, int]) -> int:
    """Bring what Redis has in line with the database; how many limits were other."""
    wanted = all_limits()
    changed = [key for key in {*wanted, *known} if wanted.get(key) != known.get(key)]
    for key in changed:
        pools.set_limit(key, wanted.get(key))
    return len(changed)


def _columns(definition: PoolDefinition, user: User) -> dict[str, Any]:
    return {
        "slots": definition.slots,
        "description": definition.description,
        "team": _team(definition.team, user),
    }


def _team(name: str, user: User) -> Group | None:
    if not name:
        return None
    team = team_called(name, user)
    if team is None:
        raise InvalidFields({"team": [no_team(name)]})
    return team
