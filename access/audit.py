"""The audit trail: who changed what, when, what was before and after. Services write it, people read it.

A change is noted in the transaction that makes it, so that there is neither without the other. Jobs and runs
are noted here, by the service functions, which see what ``.update()`` does; users, groups, pools, tasks and
tokens by django-auditlog's own look at ``save()`` (AUDITLOG_INCLUDE_TRACKING_MODELS). Nothing is ever
changed or removed (access/trail/models.py), and what looks like a secret is not kept (access/masking.py): of
variables, that they changed and never what they are.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from uuid import UUID

from django.contrib.contenttypes.models import ContentType
from django.db.models import Model, QuerySet

from access.acting import actor
from access.masking import HIDDEN, masked
from access.policy import User
from access.trail.models import ChangeRecord

CREATE, UPDATE, DELETE = 0, 1, 2  # auditlog's actions
_ACTIONS = {"created": CREATE, "deleted": DELETE}
# Objects of names and values: each name is a field of its own.
_DIVIDED = ("env", "parameters", "container", "retryPolicy")
_NAMES_ONLY = ("container.secretEnv", "container.pullSecret", "container.serviceAccount")


@dataclass(frozen=True, slots=True)
class Change:
    """``who``: a user's name, or that of the part of Punctual. ``fields``: names and (before, after)."""

    id: UUID
    at: datetime
    who: str
    action: str
    subject: str
    fields: dict[str, tuple[Any, Any]]
    token: str | None = None


@dataclass(frozen=True, slots=True)
class About:
    """Whose affair a change is: the team's, whose members see it, and a job's, on whose page it stands.

    ``subject``: what it is called where its text is not what people know it by.
    """

    team_id: int | None = None
    job_id: UUID | None = None
    subject: str = ""


def note(
    instance: Model,
    user: User,
    action: str,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
    about: About = About(),
) -> None:
    """Note that ``user`` did ``action`` ("created", "changed", "paused" …) to ``instance``.

    ``before`` and ``after``: fields as people know them; what is the same in both is left out, and
    where both are given and nothing differs, nothing was done and nothing is noted.
    """
    changes = _differences(before or {}, after or {})
    if before is not None and after is not None and not changes:
        return
    who = actor(user)
    ChangeRecord.objects.create(
        content_type=ContentType.objects.get_for_model(instance),
        object_pk=str(instance.pk),
        object_repr=about.subject or str(instance),
        action=_ACTIONS.get(action, UPDATE),
        what=action,
        who=who.name,
        actor_id=who.user_id,
        remote_addr=who.address,
        additional_data={"token": who.token} if who.token else None,
        changes=changes,
        team_id=about.team_id,
        job_id=about.job_id,
    )


def changes_of(instance: Model, limit: int, before: UUID | None = None) -> list[Change]:
    """What was done to ``instance``, to a job's runs too, the latest first; only ids below ``before``."""
    return [shown(record) for record in records_of(instance, before)[:limit]]


def records_of(instance: Model, before: UUID | None = None) -> QuerySet[ChangeRecord]:
    found = ChangeRecord.objects.order_by("-id")
    if before is not None:
        found = found.filter(id__lt=before)
    if instance._meta.label_lower == "jobs.job":
        return found.filter(job_id=instance.pk)
    return found.filter(content_type=ContentType.objects.get_for_model(instance), object_pk=str(instance.pk))


def newest_of(
    records: QuerySet[ChangeRecord], teams: frozenset[int] | None, before: UUID | None, limit: int
) -> list[ChangeRecord]:
    """At most ``limit`` of ``records`` that members of ``teams`` (None: superusers) see, the latest first.

    Of several teams it is the newest of each one's newest, which an index finds without a sort.
    """
    if before is not None:
        records = records.filter(id__lt=before)
    parts = [records] if teams is None else [records.filter(team_id=team) for team in sorted(teams)]
    each = [part.order_by("-id").values_list("id", flat=True)[:limit] for part in parts]
    if not each:
        return []
    ids = each[0] if len(each) == 1 else each[0].union(*each[1:], all=True).order_by("-id")[:limit]
    return list(ChangeRecord.objects.filter(id__in=list(ids)).order_by("-id"))


def shown(record: ChangeRecord) -> Change:
    return Change(
        id=record.id,
        at=record.timestamp,
        who=record.who,
        action=record.what,
        subject=record.object_repr,
        fields={name: _pair(value) for name, value in (record.changes or {}).items()},
        token=(record.additional_data or {}).get("token"),
    )


def value_text(value: Any) -> str:
    """One side of a change as people write it in a definition: a text as it is, anything else as JSON.

    Empty where there is nothing; an object is without the names that have no value.
    """
    if isinstance(value, Mapping):
        value = {name: item for name, item in value.items() if item is not None}
    if value is None or isinstance(value, str):
        return value or ""
    return json.dumps(value, ensure_ascii=False, default=str)


def _pair(value: Any) -> tuple[Any, Any]:
    """auditlog writes of a relation what was added or deleted."""
    if isinstance(value, dict):
        names = ", ".join(value.get("objects", ()))
        return (None, names) if value.get("operation") == "add" else (names, None)
    before, after = value
    return before, after


def _differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, list[Any]]:
    old, new = _flat(before), _flat(after)
    names = dict.fromkeys([*old, *new])
    return {
        name: [_kept(name, old.get(name)), _kept(name, new.get(name))]
        for name in names
        if old.get(name) != new.get(name)
    }


def _flat(fields: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in fields.items():
        if name in _DIVIDED and isinstance(value, Mapping):
            found |= {f"{name}.{key}": item for key, item in value.items()}
        elif value not in (None, "", {}, []):
            found[name] = value
    return found


def _kept(name: str, value: Any) -> Any:
    if name in _NAMES_ONLY:
        return value
    if name.startswith("env."):
        return None if value is None else HIDDEN
    return masked(value, name.partition(".")[2])
