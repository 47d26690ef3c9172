"""Idempotency-Key: a request made again with the same key has the answer of the first, and does nothing more.

The key is noted in the transaction of the request itself: either both are there or neither. Who asks at the
same time with the same key waits for the first to end. A key counts for one user, for a day, as long as
he may ask for what it has made.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from datetime import timedelta
from functools import wraps
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, TypeVar

from django.db import transaction
from django.utils.crypto import salted_hmac
from rest_framework.request import Request
from rest_framework.response import Response

from executions.api.models import KeptAnswer
from executions.api.reads import Reads
from executions.keys import MAX_KEY, read_key
from scheduler_project.kernel.clock import utcnow
from scheduler_project.kernel.errors import Conflict

if TYPE_CHECKING:
    from executions.api.base import RestView

Method = TypeVar("Method", bound=Callable[..., Response])
IDEMPOTENCY_KEY = "Idempotency-Key"
KEPT = timedelta(days=1)
KEYED: dict[str, Reads[Any]] = {
    IDEMPOTENCY_KEY: Reads(
        lambda value, _: read_key(value), {"type": "string", "pattern": rf"^[\x21-\x7e]{{1,{MAX_KEY}}}$"}
    ).saying("The caller's own name for this request: made again with the same one, it has the same answer.")
}


def given_key(request: Request) -> str:
    """The key of a request, or empty. InvalidFields for what cannot be one."""
    key = request.headers.get(IDEMPOTENCY_KEY)
    return "" if key is None else read_key(key)


def once_per_key(require_right: Callable[..., None]) -> Callable[[Method], Method]:
    """Decorates a method that makes something, below ``@documented``: 200 and the first answer for a key that
    has made it before; Conflict where that key asked for something else.

    ``require_right``: given the view and what the address names, refuses who may no longer ask for this, or
    not with this token, as the method would.
    """

    def decorate(method: Method) -> Method:
        @wraps(method)
        def handler(view: RestView, request: Request, *args: Any, **kwargs: Any) -> Response:
            key = given_key(request)
            if not key:
                return method(view, request, *args, **kwargs)
            with transaction.atomic():
                kept, made = _claim(view, request, key)
                if not made:
                    require_right(view, *args, **kwargs)
                    return _again(kept)
                answer = method(view, request, *args, **kwargs)
                kept.body, kept.location = answer.data, answer.headers.get("Location", "")
                kept.save(update_fields=["body", "location"])
            return answer

        return handler  # type: ignore[return-value]

    return decorate


def _claim(view: RestView, request: Request, key: str) -> tuple[KeptAnswer, bool]:
    now, digest = utcnow(), _digest(view, request)
    mine = int(view.request.user.pk or 0)
    KeptAnswer.objects.filter(user_id=mine, created_at__lt=now - KEPT).delete()
    kept, made = KeptAnswer.objects.get_or_create(
        user_id=mine, key=key, defaults={"digest": digest, "created_at": now}
    )
    if not made and bytes(kept.digest) != digest:
        raise Conflict(
            f"The Idempotency-Key {key!r} was used at {kept.created_at:%Y-%m-%dT%H:%M:%SZ} for another"
            " request. Another request needs another key."
        )
    return kept, made


def _digest(view: RestView, request: Request) -> bytes:
    """Keyed: what was asked may hold a password, which nobody is to guess from the table."""
    text = json.dumps([request.method, request.path, view.body], sort_keys=True, ensure_ascii=False)
    return salted_hmac(__name__, text, algorithm="sha256").digest()


def _again(kept: KeptAnswer) -> Response:
    headers = {"Location": kept.location} if kept.location else {}
    return Response(kept.body, status=HTTPStatus.OK, headers=headers)
