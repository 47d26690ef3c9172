"""REST of users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from http import HTTPStatus
from typing import Any

from django.contrib.auth.models import User as DjangoUser
from django.db import transaction
from django.db.models import Q, QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access.groups import visible_groups
from access.policy import User
from access.users import (
    COLUMNS,
    NewPassword,
    UserDefinition,
    create_user,
    definition_of,
    delete_user,
    find_user,
    require_right_to_create,
    seen_definition,
    seen_group_names,
    update_user,
    visible_users,
)
from executions.api import parameters
from executions.api.base import RestView, page
from executions.api.bodies import boolean
from executions.api.conditions import ETAG, MATCHING, require_match, tag_of
from executions.api.documenting import Answer, Body, documented
from executions.api.filters import only, some_of
from executions.api.idempotency import KEYED, once_per_key
from executions.api.orders import name_cursor, name_place
from executions.api.presentation import time_text
from executions.api.reads import Reads
from executions.api.shapes import flag, instant, page_of, sparse, text, whole
from scheduler_project.accounts.fields import ID, line, names, number, password


class UserShown(serializers.Serializer[Any]):
    """A user. Passwords are never shown."""

    id = whole("The number in the address of the user.")
    username = text("The name to log in with, and to be on record by.")
    firstName = text("May be empty.")
    lastName = text("May be empty.")
    email = text("May be empty.")
    isActive = flag("Whether the account may do anything: else no login and no token of it counts.")
    isStaff = flag("Whether it may use the admin.")
    isSuperuser = flag("Whether it may do everything.")
    groups = serializers.ListField(
        child=serializers.CharField(),
        help_text="The names of the user's teams and roles, in order: those that one may see.",
    )
    permissions = serializers.ListField(
        child=serializers.CharField(),
        help_text="Those of Django's that are the user's own, beside the groups'.",
    )
    hasPassword = flag("Whether one can log in with a password.")
    createdAt = instant("When the user was made, UTC.")
    lastLoginAt = instant("The last login, UTC; null: never.", null=True)


FIELDS: dict[str, Reads[Any]] = {
    "username": line(150, format="username").saying(
        "The name to log in with: letters, digits and `@.+-_`; of names that differ in capitals only"
        " there is one."
    ),
    "firstName": line(150, blank=True).saying("For people."),
    "lastName": line(150, blank=True).saying("For people."),
    "email": line(254, blank=True, format="e-mail").saying("An address, or empty."),
    "isActive": boolean.saying(
        "False: deactivated, no login and no token counts; default true.",
    ),
    "isStaff": boolean.saying("Whether the account may use the admin. Only superusers change it."),
    "isSuperuser": boolean.saying("Whether it may do everything. Only superusers change it."),
    "groups": names("group").saying(
        "All teams and roles (`viewers`, `operators`, `editors`), by name. Only superusers change them."
    ),
    "permissions": names("permission").saying(
        "All permissions of the user's own, as `jobs.add_pool`. Only superusers change them."
    ),
    "password": password.saying(
        "What to log in with, by the rules for passwords; null, or left out for a new user: no login"
        " then, only tokens count. Never shown.",
    ),
}
USER = Body("User", "A user to make.", FIELDS, required=("username",))
USER_CHANGES = Body("UserChanges", "What is to be other of a user; the rest stays.", FIELDS)
MADE = Answer(UserShown, "The user is made.", {"Location": "The address of the user.", **ETAG})
MADE_BEFORE = Answer(UserShown, "Made before, with this key.", {"Location": "The address of the user."})
SHOWN = Answer(UserShown, "The user as it is now.", ETAG)
UserPage = page_of(sparse(UserShown, "UserInList"), "UserPage")
FILTERS: dict[str, Reads[Any]] = {
    "username": parameters.text.saying("Only the one of this name."),
    "group": parameters.text.saying("Only members of the team, or holders of the role, of this name."),
    "isActive": parameters.flag.saying("Only those that are active, or that are not."),
    "isStaff": parameters.flag.saying("Only those that may use the admin, or that may not."),
    "isSuperuser": parameters.flag.saying("Only superusers, or only others."),
    "search": parameters.text.saying("Only those with this in a name or in the address, in any capitals."),
}
SEARCHED = ("username", "first_name", "last_name", "email")
LIST_PARAMETERS: dict[str, parameters.Reader] = {
    **FILTERS,
    "fields": some_of(UserShown().get_fields()),
    "limit": parameters.limit,
    "cursor": name_place,
}


def _asked(given: Mapping[str, Any]) -> UserDefinition:
    return UserDefinition(**{name: value for name, value in given.items() if name != "password"})


def _require_right(view: RestView) -> None:
    require_right_to_create(_asked(view.given), view.user)


class UserList(RestView):
    @documented("Users", query=LIST_PARAMETERS, answers={200: UserPage})
    def get(self, request: Request) -> Response:
        """All, for superusers and who may look at users (`auth.view_user`); else oneself. By name."""
        limit = self.query.get("limit", parameters.DEFAULT_LIMIT)
        found = _narrowed(visible_users(self.user), self.query, self.user)
        seen = seen_group_names(self.user)
        users = list(found[: limit + 1])
        shown = users[:limit]
        return page(
            request,
            only([user_json(user, seen) for user in shown], self.query.get("fields")),
            more=len(users) > limit,
            cursors=[name_cursor(user.username) for user in shown],
        )

    @documented("Make a user", body=USER, takes=KEYED, answers={201: MADE, 200: MADE_BEFORE}, errors=(409,))
    @once_per_key(_require_right)
    def post(self, request: Request) -> Response:
        """Who is no superuser needs `auth.add_user` and `auth.change_user`, and gives no rights. 409: there
        is one of that name, or the key was used for another request."""
        new = NewPassword(self.given.get("password"))
        user = create_user(_asked(self.given), new, self.user)
        return _shown(user, self.user, HTTPStatus.CREATED, Location=f"{request.path}/{user.pk}")


class UserDetail(RestView):
    in_path = {"user_id": ID.saying("The user's number.")}

    @documented("One user", answers={200: SHOWN})
    def get(self, request: Request, user_id: str) -> Response:
        """Oneself; any, for who may look at users."""
        return _shown(find_user(number(user_id, "user"), self.user), self.user)

    @documented("Change a user", body=USER_CHANGES, takes=MATCHING, answers={200: SHOWN}, errors=(409, 412))
    def patch(self, request: Request, user_id: str) -> Response:
        """The fields that are to be others: `{"isActive": false}` deactivates the account, `groups` are all
        its teams and roles. Who is no superuser needs `auth.change_user`, changes no rights, and reaches no
        account that may do more than the own. 409: the name is taken, or no active superuser would be left.
        """
        given = dict(self.given)
        new = NewPassword(given.pop("password")) if "password" in given else None
        with transaction.atomic():
            user = find_user(number(user_id, "user"), self.user, lock=True)
            require_match(request, asdict(seen_definition(user, seen_group_names(self.user))))
            user = update_user(user, replace(definition_of(user), **given), self.user, new)
        return _shown(user, self.user)

    @documented("Delete a user", answers={204: None}, errors=(409,))
    def delete(self, request: Request, user_id: str) -> Response:
        """And the account's tokens; what was done with it stays on record. Most often it is better to
        deactivate it. 409: no active superuser would be left."""
        with transaction.atomic():
            delete_user(find_user(number(user_id, "user"), self.user, lock=True), self.user)
        return Response(status=HTTPStatus.NO_CONTENT)


def user_json(user: DjangoUser, seen: set[str]) -> dict[str, Any]:
    """``seen``: the names of the groups that who asks may see."""
    return {
        "id": user.pk,
        **asdict(seen_definition(user, seen)),
        "hasPassword": user.has_usable_password(),
        "createdAt": time_text(user.date_joined),
        "lastLoginAt": time_text(user.last_login),
    }


def _narrowed(users: QuerySet[DjangoUser], query: Mapping[str, Any], by: User) -> QuerySet[DjangoUser]:
    for name in ("username", "isActive", "isStaff", "isSuperuser"):
        if name in query:
            users = users.filter(**{COLUMNS[name]: query[name]})
    if "group" in query:
        users = users.filter(groups__in=visible_groups(by).filter(name=query["group"]))
    if "search" in query:
        either = Q()
        for column in SEARCHED:
            either |= Q(**{f"{column}__icontains": query["search"]})
        users = users.filter(either)
    return users.filter(username__gt=query["cursor"]) if "cursor" in query else users


def _shown(user: DjangoUser, by: User, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> Response:
    """The tag, too, is of what is shown: who guesses at the rest could compare it."""
    seen = seen_group_names(by)
    tag = tag_of(asdict(seen_definition(user, seen)))
    return Response(user_json(user, seen), status=status, headers={"ETag": tag, **headers})
