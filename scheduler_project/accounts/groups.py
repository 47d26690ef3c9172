"""REST of groups: teams and roles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
from http import HTTPStatus
from typing import Any

from django.contrib.auth.models import Group
from django.db import transaction
from django.db.models import QuerySet
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access.groups import (
    GroupDefinition,
    create_group,
    definition_of,
    delete_group,
    find_group,
    require_right_to_create,
    update_group,
    visible_groups,
)
from access.roles import ROLES
from executions.api import parameters
from executions.api.base import RestView, page
from executions.api.conditions import ETAG, MATCHING, require_match, tag_of
from executions.api.documenting import Answer, Body, documented
from executions.api.filters import only, some_of
from executions.api.idempotency import KEYED, once_per_key
from executions.api.orders import name_cursor, name_place
from executions.api.reads import Reads, reads
from executions.api.shapes import one_of, page_of, shaped, sparse, text, whole
from scheduler_project.accounts.fields import ID, line, names, number
from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown as shortly

TEAM, ROLE = "team", "role"
LEVELS = [level.verb for level in ROLES.values()]


class GroupShown(serializers.Serializer[Any]):
    """A group: a team, which may own jobs, or a role. Who is in it: `GET /api/v1/users?group=NAME`."""

    id = whole("The number by which it is addressed.")
    name = text("Its name; a team's is the `owner` of jobs.")
    kind = one_of((TEAM, ROLE), "Whether it owns jobs, or says how much its members may do.")
    level = shaped(
        {"type": ["string", "null"], "enum": [*LEVELS, None]}, "How much a role lets one do; null for teams."
    )
    permissions = serializers.ListField(
        child=serializers.CharField(), help_text="Those of Django's that its members have, in order."
    )


@reads(type="string", enum=[TEAM, ROLE])
def _kind(value: str, name: str) -> str:
    if value not in (TEAM, ROLE):
        raise InvalidValue(f"{shortly(value)} is not one of {TEAM}, {ROLE}.", field=name)
    return value


FIELDS: dict[str, Reads[Any]] = {
    "name": line(150, format="new-group").saying("Its name; a team's is the `owner` of jobs."),
    "permissions": names("permission").saying(
        "All that its members have of Django's, as `jobs.add_pool`. Only superusers change them."
    ),
}
GROUP = Body("Group", "A group to make.", FIELDS, required=("name",))
GROUP_CHANGES = Body("GroupChanges", "What is to be other of a group; the rest stays.", FIELDS)
MADE = Answer(GroupShown, "It is made.", {"Location": "Its address.", **ETAG})
MADE_BEFORE = Answer(GroupShown, "It was made before, with this key.", {"Location": "Its address."})
SHOWN = Answer(GroupShown, "The group as it is now.", ETAG)
GroupPage = page_of(sparse(GroupShown, "GroupInList"), "GroupPage")
LIST_PARAMETERS: dict[str, parameters.Reader] = {
    "name": parameters.text.saying("Only the one of this name."),
    "kind": _kind.saying("Only teams, or only roles."),
    "search": parameters.text.saying("Only those with this in their name, in any capitals."),
    "fields": some_of(GroupShown().get_fields()),
    "limit": parameters.limit,
    "cursor": name_place,
}


class GroupList(RestView):
    @documented("Groups", query=LIST_PARAMETERS, answers={200: GroupPage})
    def get(self, request: Request) -> Response:
        """All, for superusers and who may look at groups (`auth.view_group`); else the own ones and the
        roles. By name."""
        limit = self.query.get("limit", parameters.DEFAULT_LIMIT)
        found = _narrowed(visible_groups(self.user), self.query)
        groups = list(found[: limit + 1])
        shown = groups[:limit]
        return page(
            request,
            only([group_json(group) for group in shown], self.query.get("fields")),
            more=len(groups) > limit,
            cursors=[name_cursor(group.name) for group in shown],
        )

    @documented("Make a group", body=GROUP, takes=KEYED, answers={201: MADE, 200: MADE_BEFORE}, errors=(409,))
    @once_per_key(lambda view: require_right_to_create(GroupDefinition(**view.given), view.user))
    def post(self, request: Request) -> Response:
        """Who is no superuser needs `auth.add_group`, is its first member, and gives it no permissions. 409:
        there is one of that name, or the key was used for another request."""
        group = create_group(GroupDefinition(**self.given), self.user)
        return _shown(group, HTTPStatus.CREATED, Location=f"{request.path}/{group.pk}")


class GroupDetail(RestView):
    in_path = {"group_id": ID.saying("The group's number.")}

    @documented("One group", answers={200: SHOWN})
    def get(self, request: Request, group_id: str) -> Response:
        """One of the own ones, or a role; any, for who may look at groups."""
        return _shown(find_group(number(group_id, "group"), self.user))

    @documented("Change a group", body=GROUP_CHANGES, takes=MATCHING, answers={200: SHOWN}, errors=(409, 412))
    def patch(self, request: Request, group_id: str) -> Response:
        """The fields that are to be others. Who is no superuser needs `auth.change_group`, and reaches only
        the own teams. 409: the name is taken."""
        with transaction.atomic():
            group = find_group(number(group_id, "group"), self.user, lock=True)
            current = definition_of(group)
            require_match(request, asdict(current))
            update_group(group, replace(current, **self.given), self.user)
        return _shown(group)

    @documented("Delete a group", answers={204: None}, errors=(409,))
    def delete(self, request: Request, group_id: str) -> Response:
        """Its members stay users; a pool that limits it is gone with it. 409: it owns jobs, or did."""
        delete_group(find_group(number(group_id, "group"), self.user), self.user)
        return Response(status=HTTPStatus.NO_CONTENT)


def group_json(group: Group) -> dict[str, Any]:
    level = ROLES.get(group.name)
    return {
        "id": group.pk,
        "name": group.name,
        "kind": TEAM if level is None else ROLE,
        "level": None if level is None else level.verb,
        "permissions": definition_of(group).permissions,
    }


def _narrowed(groups: QuerySet[Group], query: Mapping[str, Any]) -> QuerySet[Group]:
    if "name" in query:
        groups = groups.filter(name=query["name"])
    if "kind" in query:
        groups = groups.filter(name__in=ROLES) if query["kind"] == ROLE else groups.exclude(name__in=ROLES)
    if "search" in query:
        groups = groups.filter(name__icontains=query["search"])
    return groups.filter(name__gt=query["cursor"]) if "cursor" in query else groups


def _shown(group: Group, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> Response:
    tag = tag_of(asdict(definition_of(group)))
    return Response(group_json(group), status=status, headers={"ETag": tag, **headers})
