"""Who may do what. REST, the admin and the commands ask here, by way of the service functions.

A team is a group that owns jobs. Its members see and manage what is the team's, superusers everything.
How much a member may do is one level, in all of his teams: the highest that the role groups (access/roles.py)
or permissions of his own give him, and EDIT where none says anything; so a role narrows, by its
name alone. A request that came with a token may do no more than the token's scope, whoever it belongs to.
"""

from __future__ import annotations

from dataclasses import dataclass

from django.contrib.auth.models import AnonymousUser, Group
from django.contrib.auth.models import User as DjangoUser
from django.core.exceptions import PermissionDenied

from access.levels import SCOPE_OF, Level
from access.roles import ROLES, permission_of, role_groups, role_of, teams
from scheduler_project.kernel.errors import PermanentError
from scheduler_project.kernel.texts import shown


@dataclass(frozen=True, slots=True)
class System:
    """A part of Punctual, or whoever can start ``manage.py``: may do all, and is on record by ``name``."""

    name: str

    def get_username(self) -> str:
        return self.name


User = DjangoUser | AnonymousUser | System
LEVELS = frozenset(permission_of(level) for level in Level if level)


class Forbidden(PermanentError, PermissionDenied):
    """You may not do this."""


def sees_all(user: User) -> bool:
    return isinstance(user, System) or bool(user.is_active and user.is_superuser)


def team_ids(user: User) -> set[int]:
    """The ids of the teams that ``user`` is in."""
    if isinstance(user, System) or not user.is_active:
        return set()
    return set(teams().filter(id__in=user.groups.values("id")).values_list("id", flat=True))


def teams_seen_by(user: User) -> frozenset[int] | None:
    """The ids of the teams whose jobs and runs ``user`` sees; None: of all teams."""
    return None if sees_all(user) else frozenset(team_ids(user))


def team_called(name: str, user: User) -> Group | None:
    """The team of that name; None where there is none, or ``user`` does not see it: he is not told which."""
    seen = teams_seen_by(user)
    named = teams().filter(name=name)
    return (named if seen is None else named.filter(id__in=seen)).first()


def no_team(name: str) -> str:
    """What is said where ``team_called`` has found none."""
    return f"There is no team {shown(name)}, or you are not in it."


def level_of(user: User) -> Level:
    """How much ``user`` may do in his teams, by this request: its token may narrow it."""
    scope: Level | None = getattr(user, "token_scope", None)
    own = _own_level(user)
    return own if scope is None else min(own, scope)


def _own_level(user: User) -> Level:
    if sees_all(user):
        return Level.EDIT
    if isinstance(user, System | AnonymousUser) or not user.is_active:
        return Level.NONE
    roles = [ROLES[name] for name in role_groups().filter(user=user).values_list("name", flat=True)]
    held = user.get_user_permissions() if roles else user.get_all_permissions()
    given = [level for level in Level if level and permission_of(level) in held]
    return max([*roles, *given], default=Level.EDIT)


def may_manage(user: User, other: DjangoUser) -> bool:
    """Whether ``user`` may take over the account of ``other``: who can do, or once could, nothing more."""
    if isinstance(user, System) or sees_all(user) or other == user:
        return True
    if other.is_superuser or other.is_staff:
        return False
    awake = DjangoUser(id=other.id, is_active=True)
    more = awake.get_all_permissions() - LEVELS - user.get_all_permissions()
    return not more and team_ids(awake) <= team_ids(user) and _own_level(awake) <= level_of(user)


def may(user: User, level: Level, team_id: int) -> bool:
    """Whether ``user`` may do what needs ``level`` with what that team owns."""
    return level_of(user) >= level and (sees_all(user) or team_id in team_ids(user))


def require(user: User, level: Level, team: Group | int) -> None:
    """Forbidden, unless ``user`` may do what needs ``level`` with what this team (or team's id) owns."""
    if may(user, level, team if isinstance(team, int) else team.id):
        return
    team = team if isinstance(team, Group) else Group.objects.filter(id=team).first() or Group(id=team)
    name = team.name or str(team.id)
    if not sees_all(user) and team.id not in team_ids(user):
        raise Forbidden(
            f"You are not a member of the team {name!r}, so you may not {level.verb} what it owns."
        )
    require_level(user, level, f"in the team {name!r}")


def require_level(user: User, level: Level, where: str = "") -> None:
    """Forbidden, unless ``user`` has this level; ``where``: for the message."""
    held = level_of(user)
    if held >= level:
        return
    needed = f"This needs the right to {level.verb}" + (f" {where}" if where else "")
    if _own_level(user) >= level:
        raise Forbidden(
            f"{needed}: this token's scope is {SCOPE_OF[held]!r}, and {SCOPE_OF[level]!r} is needed."
        )
    raise Forbidden(f"{needed}: an administrator gives it by the group {role_of(level)!r}.")


def has_permission(user: User, permission: str, level: Level = Level.EDIT) -> bool:
    """Whether Django gives ``user`` this permission, and his level (the request's token) reaches so far."""
    return isinstance(user, System) or (level_of(user) >= level and user.has_perm(permission))


def require_permission(user: User, permission: str, level: Level = Level.EDIT) -> None:
    """Forbidden, unless ``user`` has that level and this permission of Django's: for what no team owns."""
    require_level(user, level)
    if not has_permission(user, permission, level):
        raise Forbidden(f"This needs the permission {permission}: an administrator gives it.")
