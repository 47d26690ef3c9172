"""Users: what the admin does with them, and REST.

Who has Django's permission manages accounts that may do no more than his own (access/policy.py); what makes
somebody more than he was (RIGHTS) is for superusers alone. One active superuser is always left. Passwords are
written and never read: the audit trail has that one changed, and not what it is.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, replace
from typing import Any

from django.contrib.auth.models import Group
from django.contrib.auth.models import User as DjangoUser
from django.contrib.auth.password_validation import validate_password
from django.core.exceptions import ValidationError
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet

from access.acting import NOBODY
from access.groups import (
    forget_prefetched,
    may_look,
    permission_names,
    permissions_called,
    visible_groups,
)
from access.policy import Forbidden, User, has_permission, may_manage, require_permission, sees_all
from scheduler_project.kernel.errors import Conflict, InvalidFields, NotFound
from scheduler_project.kernel.texts import shown

COLUMNS = {  # of the row, by their names in REST
    "username": "username",
    "firstName": "first_name",
    "lastName": "last_name",
    "email": "email",
    "isActive": "is_active",
    "isStaff": "is_staff",
    "isSuperuser": "is_superuser",
}
TO_ADD = ("add", "change")  # the permissions that it needs, as in Django's admin
RIGHTS = ("isStaff", "isSuperuser", "groups", "permissions")


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDefinition:
    """By its names in REST. ``groups``: teams and roles, by name; ``permissions``: of his own."""

    username: str
    firstName: str = ""
    lastName: str = ""
    email: str = ""
    isActive: bool = True
    isStaff: bool = False
    isSuperuser: bool = False
    groups: tuple[str, ...] = ()
    permissions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NewPassword:
    """``text`` None: there is none, and nobody logs in with one; tokens count all the same."""

    text: str | None = field(default=None, repr=False)


def definition_of(user: DjangoUser) -> UserDefinition:
    return UserDefinition(
        **{name: getattr(user, column) for name, column in COLUMNS.items()},
        groups=tuple(sorted(group.name for group in user.groups.all())),
        permissions=permission_names(user.user_permissions.all()),
    )


def seen_group_names(by: User) -> set[str]:
    return set(visible_groups(by).values_list("name", flat=True))


def seen_definition(user: DjangoUser, seen: set[str]) -> UserDefinition:
    """As who sees the groups of these names may see it. Of an account in his reach he sees all groups."""
    whole = definition_of(user)
    return replace(whole, groups=tuple(name for name in whole.groups if name in seen))


def visible_users(by: User) -> QuerySet[DjangoUser]:
    """Oneself; all, for who may look at users."""
    users = DjangoUser.objects.order_by("username")
    users = users.prefetch_related("groups", "user_permissions__content_type")
    if may_look(by, "user"):
        return users
    return users.filter(pk=by.pk) if isinstance(by, DjangoUser) else users.none()


def may_on_users(by: User, what: str, user: DjangoUser | None = None) -> bool:
    """Whether ``by`` may ``add``, ``change`` or ``delete`` this one; None: any at all."""
    needed = TO_ADD if what == "add" else (what,)
    if not all(has_permission(by, f"auth.{each}_user") for each in needed):
        return False
    return user is None or may_manage(by, user)


def find_user(user_id: int, by: User, *, lock: bool = False) -> DjangoUser:
    """``lock``: nobody else changes him, nor any superuser, until the transaction ends."""
    if lock:
        _lock(Q(id=user_id) | Q(is_superuser=True))
    user = visible_users(by).filter(id=user_id).first()
    if user is None:
        raise NotFound(f"There is no user {user_id}.")
    return user


def create_user(definition: UserDefinition, password: NewPassword, by: User) -> DjangoUser:
    """Forbidden; Conflict: there is one of that name; InvalidFields: also for a password that is too weak."""
    require_right_to_create(definition, by)
    return _written(DjangoUser(), definition, password)


def require_right_to_create(definition: UserDefinition, by: User) -> None:
    for what in TO_ADD:
        require_permission(by, f"auth.{what}_user")
    _require_right_to_give(UserDefinition(username=""), definition, by)


def update_user(
    user: DjangoUser, definition: UserDefinition, by: User, password: NewPassword | None = None
) -> DjangoUser:
    """Within the transaction of ``find_user``. ``password`` None: as it is.

    Errors as of ``create_user``; Conflict also where no active superuser would be left.
    """
    _require_reach(user, by, "change")
    before = definition_of(user)
    _require_right_to_give(before, definition, by)
    stays = definition.isActive and definition.isSuperuser
    if not stays or (password is not None and password.text is None):
        keep_a_superuser(user)
    return _written(user, definition, password)


def delete_user(user: DjangoUser, by: User) -> None:
    """With his tokens; what he made stays, what he did is on record. Conflict: the last active superuser."""
    _require_reach(user, by, "delete")
    with transaction.atomic():
        keep_a_superuser(user)
        user.delete()


def keep_a_superuser(*leaving: DjangoUser) -> None:
    """Conflict, where these are all active superusers who have a password; where none has, all active ones.

    In the transaction that ends them, or their passwords.
    """
    if not any(user.is_active and user.is_superuser for user in leaving):
        return
    active = _lock(Q(is_superuser=True, is_active=True))
    able = [user for user in active if user.has_usable_password()] or active
    if set(able) <= set(leaving):
        name = shown(able[0].get_username())
        raise Conflict(f"{name} is the last active superuser who can log in: make another one first.")


def _lock(users: Q) -> list[DjangoUser]:
    """In one order, so that nobody waits for each other."""
    return list(DjangoUser.objects.select_for_update().filter(users).order_by("id"))


def _require_reach(user: DjangoUser, by: User, what: str) -> None:
    require_permission(by, f"auth.{what}_user")
    if not may_on_users(by, what, user):
        raise Forbidden(f"This account may do more than you, or once could: only superusers {what} it.")


def _require_right_to_give(before: UserDefinition, after: UserDefinition, by: User) -> None:
    if sees_all(by):
        return
    old, new = asdict(before), asdict(after)
    given = [name for name in RIGHTS if _settled(old[name]) != _settled(new[name])]
    if given:
        raise Forbidden(f"Only superusers change the rights of users: {', '.join(given)}.")


def _settled(value: Any) -> Any:
    return frozenset(value) if isinstance(value, tuple) else value


def _written(user: DjangoUser, definition: UserDefinition, password: NewPassword | None) -> DjangoUser:
    stays = definition.username == user.username
    for name, column in COLUMNS.items():
        setattr(user, column, getattr(definition, name))
    if not stays:
        user.username = DjangoUser.normalize_username(user.username)
        require_free_name(user.username, user)
    errors = _errors_of(user, stays) | _errors_of_password(user, password)
    if errors:
        raise InvalidFields(errors)
    groups, permissions = _groups_called(definition.groups), permissions_called(definition.permissions)
    if password is not None:
        user.set_password(password.text)
    with transaction.atomic():
        _save(user)
        user.groups.set(groups)
        user.user_permissions.set(permissions)
    forget_prefetched(user)
    return user


def require_free_name(name: str, user: DjangoUser) -> None:
    """What ``user`` is to be called. Names that differ in capitals only are one name.

    Conflict: somebody else is called so; InvalidFields: on record that is what no user has done.
    """
    if name.casefold() == NOBODY:
        raise InvalidFields(
            {"username": [f"{shown(name)} stands for commands on record: choose another name."]}
        )
    if DjangoUser.objects.filter(username__iexact=name).exclude(pk=user.pk).exists():
        raise _taken(name)


def _taken(name: str) -> Conflict:
    return Conflict(f"There is a user {shown(name)} already.")


def _save(user: DjangoUser) -> None:
    try:
        with transaction.atomic():
            user.save()
    except IntegrityError as error:
        raise _taken(user.username) from error


def _errors_of(user: DjangoUser, name_stays: bool) -> dict[str, list[str]]:
    try:
        user.clean_fields(exclude=["password", *(["username"] if name_stays else [])])
    except ValidationError as error:
        names = {column: name for name, column in COLUMNS.items()}
        return {names.get(column, column): texts for column, texts in error.message_dict.items()}
    return {}


def _errors_of_password(user: DjangoUser, password: NewPassword | None) -> dict[str, list[str]]:
    if password is None or password.text is None:
        return {}
    try:
        validate_password(password.text, user)
    except ValidationError as error:
        return {"password": error.messages}
    return {}


def _groups_called(names: tuple[str, ...]) -> list[Group]:
    found = list(Group.objects.filter(name__in=names))
    missing = sorted(set(names) - {group.name for group in found})
    if missing:
        raise InvalidFields({"groups": [f"There is no group {shown(name)}." for name in missing]})
    return found
