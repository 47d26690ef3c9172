"""Who may do what: superusers everything, others what belongs to the teams (groups) they are in."""

from __future__ import annotations

from django.contrib.auth.models import AnonymousUser, Group
from django.contrib.auth.models import User as DjangoUser

from scheduler_project.kernel.errors import PermanentError

User = DjangoUser | AnonymousUser


class Forbidden(PermanentError):
    """You may not do this."""


def sees_all(user: User) -> bool:
    return bool(user.is_active and user.is_superuser)


def team_ids(user: User) -> set[int]:
    """The ids of the teams that ``user`` is in."""
    return set(user.groups.values_list("id", flat=True)) if user.is_active else set()


def teams_seen_by(user: User) -> frozenset[int] | None:
    """The ids of the teams whose jobs and runs ``user`` sees; None: of all teams."""
    return None if sees_all(user) else frozenset(team_ids(user))


def require_member(user: User, team: Group) -> None:
    """Forbidden, unless ``user`` may manage what ``team`` owns."""
    if not sees_all(user) and team.id not in team_ids(user):
        raise Forbidden(f"You are not a member of the team {team.name!r}, so you cannot manage its jobs.")
