"""Ready-made groups that say how much their members may do: viewers, operators and editors.

A group is a role by its name, whatever permissions it carries. ``migrate`` makes those that are missing, and
gives each its permission again. A role group owns nothing and is no team.
"""

from __future__ import annotations

from typing import Any

from django.contrib.auth.models import Group, Permission
from django.db.models import QuerySet

from access.levels import Level

APP = "access"
ROLES = {"viewers": Level.VIEW, "operators": Level.OPERATE, "editors": Level.EDIT}


def permission_of(level: Level) -> str:
    """``access.view`` and so on, as ``User.has_perm`` takes it."""
    return f"{APP}.{level.verb}"


def role_of(level: Level) -> str:
    """The name of the group that gives this level."""
    return next(name for name, given in ROLES.items() if given is level)


def like_a_role(name: str) -> bool:
    """Whether it is taken for a role's, and is none: ``Editors``."""
    return name not in ROLES and name.casefold() in ROLES


def role_groups() -> QuerySet[Group]:
    return Group.objects.filter(name__in=ROLES)


def teams() -> QuerySet[Group]:
    """Every group that may own jobs."""
    return Group.objects.exclude(name__in=ROLES)


def make_role_groups(**_signal: Any) -> None:
    """After a migration: the groups that are not there yet, and each one's permission, of these no other."""
    levels = {each.codename: each for each in Permission.objects.filter(content_type__app_label=APP)}
    for name, level in ROLES.items():
        group, _ = Group.objects.get_or_create(name=name)
        group.permissions.remove(*(levels[each.verb] for each in ROLES.values() if each is not level))
        group.permissions.add(levels[level.verb])
