"""Django system checks: a deployment that cannot work is told so, with what to do about it.

What a variable may hold is refused when the settings are read (env.py). Here is what only
several of them, or their absence, can tell. The ids are stable.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, Warning
from django.core.exceptions import ImproperlyConfigured


def check_secret_key(**_: Any) -> list[CheckMessage]:
    try:
        given = bool(settings.SECRET_KEY)
    except ImproperlyConfigured:
        given = False
    if given:
        return []
    hint = "Set SECRET_KEY to a long random text. `manage.py standalone` makes and keeps one by itself."
    return [Error("There is no SECRET_KEY.", hint=hint, id="punctual.E001")]


def check_part(name: str, part: str, example: str, identity: str, **_: Any) -> list[CheckMessage]:
    """The part has an address: from the environment, or from what standalone left in PUNCTUAL_HOME."""
    if getattr(settings, name):
        return []
    hint = f"Set {name}, for example to {example}, or start `manage.py standalone`, which brings one."
    return [Error(f"There is no address of {part}.", hint=hint, id=identity)]


def check_debug(**_: Any) -> list[CheckMessage]:
    """DEBUG shows settings and stack traces to whoever meets an error."""
    local = {"localhost", "127.0.0.1", "[::1]"}
    if not settings.DEBUG or set(settings.ALLOWED_HOSTS) <= local:
        return []
    hint = "Unset DEBUG, or leave ALLOWED_HOSTS at this machine."
    return [Warning("DEBUG is on and other machines may reach this one.", hint=hint, id="punctual.W002")]


CHECKS = (check_secret_key, check_debug)
# Each is registered under its name as a tag, so that a command asks only for the parts that it uses.
PART_CHECKS: dict[str, Callable[..., list[CheckMessage]]] = {
    name: partial(check_part, name, part, example, identity)
    for name, part, example, identity in (
        ("DATABASE_URL", "the database", "postgresql://user:password@host:5432/punctual", "punctual.E002"),
        ("REDIS_URL", "Redis", "redis://host:6379/0", "punctual.E003"),
        ("BROKER_URL", "the message broker", "pyamqp://user:password@host:5672//", "punctual.E004"),
    )
}


def missing_parts(names: Iterable[str]) -> list[CheckMessage]:
    return [message for name in names for message in PART_CHECKS[name]()]
