"""Tokens for REST: made, looked up, revoked.

The text is ``punctual_`` and 256 random bits, and is shown once, when it is made: the table has its SHA-256.
So a look-up is one by an index over digests, whose time tells nobody how much of a guessed text was right,
and who reads the table or a dump of it has no token. A token never gives more than it has itself: one that is
made by way of a token has at most its scope and its time.
"""

from __future__ import annotations

import hashlib
import logging
import secrets
from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.contrib.auth.models import AnonymousUser
from django.contrib.auth.models import User as DjangoUser
from django.db import DatabaseError, IntegrityError, transaction
from django.db.models import Q, QuerySet

from access.levels import SCOPES
from access.models import ApiToken
from access.policy import Forbidden, System, User, sees_all
from scheduler_project.kernel.errors import Conflict, InvalidFields, NotFound
from scheduler_project.kernel.texts import control_character, shown, unsendable

logger = logging.getLogger(__name__)

MARK = "punctual_"
SHOWN = 4  # characters behind the mark, by which people tell tokens apart
SECRET_BYTES = 32
MAX_NAME = 100
USE_NOTED_EVERY = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class TokenRequest:
    """``expires_at``: None for never."""

    name: str
    scope: str
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class MadeToken:
    """``text``: what is sent with requests; it can never be had again."""

    token: ApiToken
    text: str


class BadToken(Forbidden):
    """There is no such token."""


def create_token(owner: User, asked: TokenRequest, by: User, now: datetime) -> MadeToken:
    """Make a token of ``owner``.

    Forbidden: for somebody else, unless ``by`` sees all; more than the token that ``by`` came with gives.
    InvalidFields. Conflict: the owner has a token of that name that is not revoked.
    """
    if not isinstance(owner, DjangoUser) or not owner.is_active:
        raise InvalidFields({"user": ["Tokens belong to active users."]})
    if not sees_all(by) and by != owner:
        raise Forbidden("You can make tokens for yourself only.")
    _check(asked, now)
    _check_not_more(asked, by)
    text = MARK + secrets.token_urlsafe(SECRET_BYTES)
    token = ApiToken(
        name=asked.name,
        user=owner,
        digest=digest_of(text),
        prefix=text[: len(MARK) + SHOWN],
        scope=asked.scope,
        created_at=now,
        expires_at=asked.expires_at,
    )
    try:
        with transaction.atomic():
            token.save(force_insert=True)
    except IntegrityError as error:
        raise Conflict(f"{owner.get_username()} has a token named {shown(asked.name)} already.") from error
    return MadeToken(token, text)


def owner_called(name: str, by: User) -> DjangoUser | None:
    """The user of that name, whose tokens ``by`` may make; only who sees all is told whether there is one."""
    if isinstance(by, DjangoUser) and name == by.get_username():
        return by
    return DjangoUser.objects.filter(username=name).first() if sees_all(by) else None


def no_owner(name: str) -> str:
    """What is said where ``owner_called`` has found none."""
    return f"There is no user {shown(name)}, or you may not make tokens for him."


def _check(asked: TokenRequest, now: datetime) -> None:
    errors: dict[str, list[str]] = {}
    unreadable = control_character(asked.name) or unsendable(asked.name)
    if unreadable or not 1 <= len(asked.name.strip()) <= len(asked.name) <= MAX_NAME:
        errors["name"] = [f"{shown(asked.name)} is no name: 1 to {MAX_NAME} characters that can be read."]
    if asked.scope not in SCOPES:
        errors["scope"] = [f"{shown(asked.scope)} is not one of {', '.join(SCOPES)}."]
    if asked.expires_at is not None and asked.expires_at <= now:
        errors["expiresAt"] = [f"{asked.expires_at:%Y-%m-%dT%H:%M:%SZ} has passed."]
    if errors:
        raise InvalidFields(errors)


def _check_not_more(asked: TokenRequest, by: User) -> None:
    used = token_of(by)
    if used is None:
        return
    if SCOPES[asked.scope] > used.level:
        raise Forbidden(
            f"A token of scope {used.scope!r} makes no token of scope {asked.scope!r}: only up to its own."
        )
    if used.expires_at is not None and (asked.expires_at is None or asked.expires_at > used.expires_at):
        raise Forbidden(
            f"A token that expires at {used.expires_at:%Y-%m-%dT%H:%M:%SZ} makes no token that lasts longer."
        )


def token_of(user: User) -> ApiToken | None:
    """The token that the request of ``user`` came with."""
    return getattr(user, "token", None)


def visible_tokens(user: User) -> QuerySet[ApiToken]:
    """His own; all, for who sees all."""
    tokens = ApiToken.objects.select_related("user")
    if sees_all(user):
        return tokens
    return tokens.none() if isinstance(user, System | AnonymousUser) else tokens.filter(user=user)


def find_token(token_id: UUID, user: User) -> ApiToken:
    token = visible_tokens(user).filter(id=token_id).first()
    if token is None:
        raise NotFound(f"There is no token {token_id}.")
    return token


def revoke_token(token: ApiToken, by: User, now: datetime) -> None:
    """It counts no more. Twice is once. A token revokes none that may do more than itself."""
    if not sees_all(by) and by != token.user:
        raise Forbidden("You can revoke your own tokens only.")
    used = token_of(by)
    if used is not None and token.level > used.level:
        raise Forbidden(f"A token of scope {used.scope!r} revokes no token of scope {token.scope!r}.")
    with transaction.atomic():
        token = ApiToken.objects.select_for_update().get(id=token.id)
        if token.revoked_at is None:
            token.revoked_at = now
            token.save(update_fields=["revoked_at"])  # the audit trail sees what is saved


def token_by_text(text: str, now: datetime) -> ApiToken:
    """The token that this is the text of, with its user; its use is noted. BadToken: it lets nobody in."""
    token = ApiToken.objects.select_related("user").filter(digest=digest_of(text)).first()
    if token is None:
        raise BadToken("There is no such token.")
    if token.revoked_at is not None:
        raise BadToken(f"This token was revoked at {token.revoked_at:%Y-%m-%dT%H:%M:%SZ}.")
    if token.expires_at is not None and token.expires_at <= now:
        raise BadToken(f"This token expired at {token.expires_at:%Y-%m-%dT%H:%M:%SZ}.")
    if not token.user.is_active:
        raise BadToken("The user of this token is not active.")
    _note_use(token, now)
    return token


def _note_use(token: ApiToken, now: datetime) -> None:
    """Once a minute. A database that cannot be written to right now lets in all the same."""
    if token.last_used_at is not None and now - token.last_used_at < USE_NOTED_EVERY:
        return
    stale = Q(last_used_at=None) | Q(last_used_at__lte=now - USE_NOTED_EVERY)
    try:
        with transaction.atomic():
            ApiToken.objects.filter(stale, id=token.id).update(last_used_at=now)
    except DatabaseError as error:
        logger.warning("token_use_not_noted", extra={"token": token.id, "error": str(error).strip()})


def digest_of(text: str) -> bytes:
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()


def ensure_token(owner: DjangoUser, name: str, text: str, now: datetime) -> str:
    """``text``, where it is that of a token of ``owner`` that counts; else the text of a new one, to edit.

    One of the same name that is not it is revoked.
    """
    known = ApiToken.objects.filter(user=owner, name=name, revoked_at=None)
    if known.filter(Q(expires_at=None) | Q(expires_at__gt=now), digest=digest_of(text)).exists():
        return text
    by = System(f"manage.py {name}")
    for other in known:
        revoke_token(other, by, now)
    return create_token(owner, TokenRequest(name, "edit"), by, now).text
