"""REST of pools."""

from __future__ import annotations

from dataclasses import asdict, replace
from http import HTTPStatus
from typing import Any

from django.db import transaction
from rest_framework.request import Request
from rest_framework.response import Response

from access.policy import require_permission
from executions.api import parameters
from executions.api.base import RestView, page
from executions.api.bodies import text, whole_number
from executions.api.conditions import ETAG, MATCHING, require_match, tag_of
from executions.api.documenting import Answer, Body, documented
from executions.api.filters import only, some_of
from executions.api.idempotency import KEYED, once_per_key
from executions.api.orders import name_cursor, name_place
from executions.api.presentation import time_text
from executions.api.reads import Reads, reads
from executions.pools import Usage
from jobs.api.schemas import PoolPage, PoolShown
from jobs.models import Pool
from jobs.pool_names import POOL_NAME as POOL_NAME_PATTERN
from jobs.pool_names import pool_name
from jobs.pools import (
    MOST_SLOTS,
    PoolDefinition,
    create_pool,
    definition_of,
    delete_pool,
    find_pool,
    update_pool,
    usage_of,
    visible_pools,
)


def _team(value: object, name: str) -> str:
    return "" if value is None else text(value, name)


POOL_NAME = reads(type="string", pattern=f"^{POOL_NAME_PATTERN.pattern}$")(pool_name)
FIELDS: dict[str, Reads[Any]] = {
    "name": POOL_NAME.saying("Its name, by which jobs name it; it cannot be changed."),
    "slots": whole_number(0, MOST_SLOTS).saying("How many runs may be under way at once; 0: none begins."),
    "team": reads(type=["string", "null"], format="team")(_team).saying(
        "The team all of whose runs it limits by itself; null or empty: the jobs that name it. It cannot be"
        " changed."
    ),
    "description": text.saying("For people."),
}
LIST_PARAMETERS: dict[str, parameters.Reader] = {
    "fields": some_of(PoolShown().get_fields()),
    "limit": parameters.limit,
    "cursor": name_place,
}
POOL = Body("Pool", "A pool to make.", FIELDS, required=("name", "slots"))
POOL_CHANGES = Body("PoolChanges", "What is to be other of a pool; the rest stays.", FIELDS)
MADE = Answer(PoolShown, "It is made.", {"Location": "Its address.", **ETAG})
MADE_BEFORE = Answer(PoolShown, "It was made before, with this key.", {"Location": "Its address."})
SHOWN = Answer(PoolShown, "The pool as it is now.", ETAG)


class PoolList(RestView):
    @documented("Pools", query=LIST_PARAMETERS, answers={200: PoolPage})
    def get(self, request: Request) -> Response:
        """Those that jobs may name, and those of the user's teams, in the order of their names."""
        limit = self.query.get("limit", parameters.DEFAULT_LIMIT)
        found = visible_pools(self.user)
        if "cursor" in self.query:
            found = found.filter(name__gt=self.query["cursor"])
        pools = list(found[: limit + 1])
        shown = pools[:limit]
        usage = usage_of(shown)
        return page(
            request,
            only([pool_json(pool, usage.get(pool.name)) for pool in shown], self.query.get("fields")),
            more=len(pools) > limit,
            cursors=[name_cursor(pool.name) for pool in shown],
        )

    @documented("Make a pool", body=POOL, takes=KEYED, answers={201: MADE, 200: MADE_BEFORE}, errors=(409,))
    @once_per_key(lambda view: require_permission(view.user, "jobs.add_pool"))
    def post(self, request: Request) -> Response:
        """It limits at once. 409: there is one of that name, or for that team, or the key was used for
        another request."""
        pool = create_pool(PoolDefinition(**self.given), self.user)
        return _shown(pool, HTTPStatus.CREATED, Location=f"{request.path}/{pool.name}")


class PoolDetail(RestView):
    in_path = {"name": POOL_NAME.saying("The pool's name.")}

    @documented("One pool", answers={200: SHOWN})
    def get(self, request: Request, name: str) -> Response:
        """Its limit, and how it is used now."""
        return _shown(find_pool(name, self.user))

    @documented("Change a pool", body=POOL_CHANGES, takes=MATCHING, answers={200: SHOWN}, errors=(412,))
    def patch(self, request: Request, name: str) -> Response:
        """The fields that are to be others. Another number of slots holds at once."""
        with transaction.atomic():
            pool = find_pool(name, self.user, lock=True)
            current = definition_of(pool)
            require_match(request, asdict(current))
            update_pool(pool, replace(current, **self.given), self.user)
        return _shown(pool)

    @documented("Delete a pool", answers={204: None}, errors=(409,))
    def delete(self, request: Request, name: str) -> Response:
        """409: jobs name it."""
        delete_pool(find_pool(name, self.user), self.user)
        return Response(status=HTTPStatus.NO_CONTENT)


def pool_json(pool: Pool, usage: Usage | None) -> dict[str, Any]:
    """``usage``: None where Redis does not answer."""
    return {
        "name": pool.name,
        "slots": pool.slots,
        "team": pool.team.name if pool.team else None,
        "description": pool.description,
        "active": usage and usage.active,
        "waiting": usage and usage.waiting,
        "exceeded": usage and usage.exceeded,
        "createdAt": time_text(pool.created_at),
    }


def _shown(pool: Pool, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> Response:
    pool.refresh_from_db(fields=["created_at"])
    tag = tag_of(asdict(definition_of(pool)))
    return Response(
        pool_json(pool, usage_of([pool]).get(pool.name)), status=status, headers={"ETag": tag, **headers}
    )
