"""Whether who follows a log still may: asked anew while the stream lasts, of the database as it is now."""

from __future__ import annotations

import logging

from django.contrib.auth.models import User as DjangoUser
from django.db import InterfaceError, OperationalError

from access.models import ApiToken
from access.policy import User, teams_seen_by
from access.tokens import token_of
from executions.followed_rows import give_connection_back
from executions.models import Execution
from scheduler_project.kernel.clock import utcnow

logger = logging.getLogger(__name__)


def refusal(user: User, execution: Execution) -> str | None:
    """Why ``user`` may not follow any further; None: he may, or the database does not answer."""
    if not isinstance(user, DjangoUser):
        return None
    try:
        return _refusal_of_token(user) or _refusal_of_user(user, execution)
    except (OperationalError, InterfaceError) as error:
        logger.warning("follower_not_looked_up", extra={"error": str(error).strip()})
        return None
    finally:
        give_connection_back()


def _refusal_of_token(user: User) -> str | None:
    used = token_of(user)
    if used is None:
        return None
    token = ApiToken.objects.filter(id=used.id, revoked_at=None).first()
    if token is None:
        return "Your token was revoked."
    expired = token.expires_at is not None and token.expires_at <= utcnow()
    return "Your token has expired." if expired else None


def _refusal_of_user(user: DjangoUser, execution: Execution) -> str | None:
    now = DjangoUser.objects.filter(pk=user.pk, is_active=True).first()
    if now is None:
        return "Your user is not active any more."
    teams = teams_seen_by(now)
    if teams is None or execution.owner_id in teams:
        return None
    return "You are no longer in the team whose run this is."
