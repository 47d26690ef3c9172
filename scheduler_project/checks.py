"""Django system checks: a deployment that cannot work is told so, with what to do about it.

What a variable may hold is refused when the settings are read (env.py). Here is what only
several of them, or their absence, can tell. The ids are stable.
"""

from __future__ import annotations

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured

_PARTS = (
    ("punctual.E002", "DATABASE_URL", "the database", "postgresql://user:password@host:5432/punctual"),
    ("punctual.E003", "REDIS_URL", "Redis", "redis://host:6379/0"),
    ("punctual.E004", "BROKER_URL", "the message broker", "pyamqp://user:password@host:5672//"),
)


def check_secret_key(**_: Any) -> list[CheckMessage]:
    try:
        given = bool(settings.SECRET_KEY)
    except ImproperlyConfigured:
        given = False
    if given:
        return []
    hint = "Set SECRET_KEY to a long random text. `manage.py standalone` makes and keeps one by itself."
    return [Error("There is no SECRET_KEY.", hint=hint, id="punctual.E001")]


def check_parts(**_: Any) -> list[CheckMessage]:
    """Each part has an address: from the environment, or from what standalone left in PUNCTUAL_HOME."""
    return [
        Error(
            f"There is no address of {part}.",
            hint=f"Set {name}, for example to {example}, or start `manage.py standalone`, which brings one.",
            id=identity,
        )
        for identity, name, part, example in _PARTS
        if not getattr(settings, name)
    ]


def check_times(**_: Any) -> list[CheckMessage]:
    """A run that is on its way to the broker must not be taken for one that got lost there."""
    if settings.PUNCTUAL_ENQUEUE_TIMEOUT > settings.PUNCTUAL_DISPATCH_LEASE:
        return []
    hint = "Make PUNCTUAL_ENQUEUE_TIMEOUT the longer of the two."
    text = "PUNCTUAL_ENQUEUE_TIMEOUT is not longer than PUNCTUAL_DISPATCH_LEASE: runs would be sent twice."
    return [Warning(text, hint=hint, id="punctual.W001")]


def check_debug(**_: Any) -> list[CheckMessage]:
    """DEBUG shows settings and stack traces to whoever meets an error."""
    local = {"localhost", "127.0.0.1", "[::1]"}
    if not settings.DEBUG or set(settings.ALLOWED_HOSTS) <= local:
        return []
    hint = "Unset DEBUG, or leave ALLOWED_HOSTS at this machine."
    return [Warning("DEBUG is on and other machines may reach this one.", hint=hint, id="punctual.W002")]


CHECKS = (check_secret_key, check_parts, check_times, check_debug)
