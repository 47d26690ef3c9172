"""``manage.py tokens``: tokens for REST, made, listed and revoked."""

from __future__ import annotations

from typing import Any

from django.core.management.base import CommandParser

from access.levels import SCOPES
from access.models import ApiToken
from access.policy import System, User
from access.tokens import (
    TokenRequest,
    create_token,
    find_token,
    no_owner,
    owner_called,
    revoke_token,
    visible_tokens,
)
from executions.api import parameters
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import NotFound
from scheduler_project.operating.command import OperatorCommand, Options, option
from scheduler_project.operating.tables import Column
from scheduler_project.tokens.api import token_json

COLUMNS = (
    Column("ID"),
    Column("NAME", shrinks=True),
    Column("USER"),
    Column("BEGINS"),
    Column("SCOPE"),
    Column("IS"),
    Column("LAST USED"),
    Column("EXPIRES"),
)


class Command(OperatorCommand):
    help = "Make, list and revoke tokens for REST. Exit statuses: docs/commands.md."

    def add_arguments(self, parser: CommandParser) -> None:
        actions = parser.add_subparsers(dest="action", metavar="ACTION", required=True)
        create = self.add_action(actions, "create", self.create, "Make one; its text is written this once.")
        create.add_argument("name", metavar="NAME", help="what it is for")
        create.add_argument("--for", dest="owner", default="", metavar="USER", help="whose rights it carries")
        create.add_argument("--scope", choices=list(SCOPES), default="read", help="the most it may do (read)")
        create.add_argument(
            "--expires", type=option(parameters.instant, "--expires"), metavar="INSTANT", help="until when"
        )
        self.add_action(actions, "list", self.list_tokens, "Those of --user; without it, all.")
        revoke = self.add_action(actions, "revoke", self.revoke, "They count no more.")
        revoke.add_argument("token", nargs="+", type=option(parameters.uuid, "TOKEN"), metavar="ID")

    def create(self, options: Options) -> None:
        user = self.user(options)
        asked = TokenRequest(options["name"], options["scope"], options["expires"])
        made = create_token(_owner(options["owner"], user), asked, user, utcnow())
        if self.as_json:
            self.write_json({**token_json(made.token), "token": made.text})
        else:
            self.stdout.write(made.text)

    def list_tokens(self, options: Options) -> None:
        tokens = list(visible_tokens(self.user(options)).order_by("user__username", "name", "created_at"))
        if self.as_json:
            self.write_json({"results": [token_json(token) for token in tokens]})
        else:
            self.write_table(COLUMNS, [self._row(token) for token in tokens])

    def revoke(self, options: Options) -> None:
        user = self.user(options)
        tokens = [find_token(token_id, user) for token_id in options["token"]]
        for token in tokens:
            revoke_token(token, user, utcnow())
        if self.as_json:
            self.write_json({"results": [token_json(find_token(token.id, user)) for token in tokens]})
        else:
            self.write_lines([f"{token.id} ({token.name}) counts no more" for token in tokens])

    def _row(self, token: ApiToken) -> tuple[Any, ...]:
        condition = token.condition(utcnow())
        begins = f"{token.prefix}…"
        used, ends = (at and self.time(at) for at in (token.last_used_at, token.expires_at))
        return (token.id, token.name, token.user, begins, token.scope, condition, used or "", ends or "")


def _owner(name: str, user: User) -> User:
    if not name:
        if isinstance(user, System):
            raise NotFound("Say whose token it is to be: --for USER.")
        return user
    found = owner_called(name, user)
    if found is None:
        raise NotFound(no_owner(name))
    return found
