"""Groups: teams, which own jobs, and the roles. What the admin does with them, and REST.

Who has Django's permission manages the teams that he is in; roles and permissions are for superusers alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from django.contrib.auth.models import Group, Permission
from django.contrib.auth.models import User as DjangoUser
from django.db import IntegrityError, transaction
from django.db.models import ProtectedError, Q, QuerySet

from access.policy import Forbidden, System, User, has_permission, require_permission, sees_all, team_ids
from access.roles import APP, ROLES, like_a_role
from scheduler_project.kernel.errors import Conflict, InvalidFields, NotFound
from scheduler_project.kernel.texts import shown


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupDefinition:
    """``permissions``: ``app.codename``, in order."""

    name: str
    permissions: tuple[str, ...] = ()


def definition_of(group: Group) -> GroupDefinition:
    return GroupDefinition(name=group.name, permissions=permission_names(group.permissions.all()))


def visible_groups(by: User) -> QuerySet[Group]:
    """The own ones and the roles; all, for who may look at groups."""
    groups = Group.objects.order_by("name").prefetch_related("permissions__content_type")
    if may_look(by, "group"):
        return groups
    return groups.filter(Q(id__in=team_ids(by)) | Q(name__in=ROLES))


def may_look(by: User, model: str) -> bool:
    """Whether the admin would list all of this model for ``by``."""
    if sees_all(by) or isinstance(by, System):
        return True
    return any(by.has_perm(f"auth.{what}_{model}") for what in ("view", "change"))


def may_on_groups(by: User, what: str, group: Group | None = None) -> bool:
    """Whether ``by`` may ``add``, ``change`` or ``delete`` this one; None: any at all."""
    if not has_permission(by, f"auth.{what}_group"):
        return False
    return group is None or sees_all(by) or _in_reach(group, by)


def _in_reach(group: Group, by: User) -> bool:
    """Roles, and teams that carry a level: one that is renamed or gone would make its members editors."""
    return group.id in team_ids(by) and not group.permissions.filter(content_type__app_label=APP).exists()


def find_group(group_id: int, by: User, *, lock: bool = False) -> Group:
    """``lock``: nobody else changes it until the transaction ends."""
    groups = visible_groups(by).filter(id=group_id)
    group = (groups.select_for_update(of=("self",)) if lock else groups).first()
    if group is None:
        raise NotFound(f"There is no group {group_id}.")
    return group


def require_group_name(name: str, by: User) -> None:
    """What a group is to be called. Forbidden; InvalidFields for what would be taken for a role."""
    if like_a_role(name):
        said = f"{shown(name)} would be taken for the role {name.casefold()!r}: choose another name."
        raise InvalidFields({"name": [said]})
    if name in ROLES and not sees_all(by):
        raise Forbidden(f"{name!r} is a role: only superusers make it.")


def make_team(name: str, by: User) -> Group | None:
    """A new one, with ``by`` as its first member unless he sees all; None where there is one of that name.

    Errors as of ``require_group_name``.
    """
    if not Group.objects.filter(name=name).exists():
        require_group_name(name, by)
    team, made = Group.objects.get_or_create(name=name)
    if not made:
        return None
    join_as_first(team, by)
    return team


def join_as_first(team: Group, by: User) -> None:
    """Who made a team is in it; who sees all need not be."""
    if isinstance(by, DjangoUser) and not sees_all(by):
        by.groups.add(team)


def create_group(definition: GroupDefinition, by: User) -> Group:
    """Forbidden; Conflict: there is one of that name; InvalidFields: no such permission."""
    require_right_to_create(definition, by)
    with transaction.atomic():
        group = make_team(definition.name, by)
        if group is None:
            raise Conflict(f"There is a group {shown(definition.name)} already.")
        _write_permissions(group, definition)
    return group


def require_right_to_create(definition: GroupDefinition, by: User) -> None:
    require_permission(by, "auth.add_group")
    _require_right_to_give(GroupDefinition(name=""), definition, by)


def update_group(group: Group, definition: GroupDefinition, by: User) -> Group:
    """Errors as of ``create_group``."""
    _require_reach(group, by, "change")
    _require_right_to_give(definition_of(group), definition, by)
    with transaction.atomic():
        if definition.name != group.name:
            _rename(group, definition.name)
        _write_permissions(group, definition)
    return group


def delete_group(group: Group, by: User) -> None:
    """Its members are in it no more; a pool that limits it is gone with it. Conflict: it has jobs."""
    _require_reach(group, by, "delete")
    try:
        with transaction.atomic():
            group.delete()
    except ProtectedError as error:
        raise Conflict(
            f"The team {group.name!r} owns jobs, deleted ones whose history is kept among them: it stays."
        ) from error


def permission_names(permissions: Iterable[Permission]) -> tuple[str, ...]:
    return tuple(sorted(f"{each.content_type.app_label}.{each.codename}" for each in permissions))


def permissions_called(names: Iterable[str]) -> list[Permission]:
    """InvalidFields: there is none of such a name."""
    wanted = Q(pk__in=())
    for name in names:
        app, _, codename = name.partition(".")
        wanted |= Q(content_type__app_label=app, codename=codename)
    found = list(Permission.objects.filter(wanted).select_related("content_type"))
    missing = sorted(set(names) - set(permission_names(found)))
    if missing:
        raise InvalidFields(
            {
                "permissions": [
                    f"There is no permission {shown(name)}: as in jobs.add_pool." for name in missing
                ]
            }
        )
    return found


def _require_reach(group: Group, by: User, what: str) -> None:
    require_permission(by, f"auth.{what}_group")
    if not may_on_groups(by, what, group):
        raise Forbidden(
            f"You are not in {group.name!r}, or it is a role or carries a level: only superusers {what} it."
        )


def _require_right_to_give(before: GroupDefinition, after: GroupDefinition, by: User) -> None:
    if before.name != after.name:
        require_group_name(after.name, by)
    if not sees_all(by) and set(before.permissions) != set(after.permissions):
        raise Forbidden("Only superusers give permissions to groups.")


def _rename(group: Group, name: str) -> None:
    group.name = name
    try:
        with transaction.atomic():
            group.save(update_fields=["name"])
    except IntegrityError as error:
        raise Conflict(f"There is a group {shown(name)} already.") from error


def _write_permissions(group: Group, definition: GroupDefinition) -> None:
    if set(definition_of(group).permissions) != set(definition.permissions):
        found: Any = permissions_called(definition.permissions)
        group.permissions.set(found)
        forget_prefetched(group)


def forget_prefetched(row: Group | DjangoUser) -> None:
    """What was read with the row is not what it has been given since."""
    vars(row).pop("_prefetched_objects_cache", None)
