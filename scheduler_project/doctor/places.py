"""Where logs are written and kept, and with which settings this process runs."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from uuid import UUID

from django.conf import settings
from django.core import checks
from django.core.exceptions import ImproperlyConfigured

from executions.log_archive import ArchiveUnavailable, log_archive
from scheduler_project.doctor.findings import Finding, away, failure, ok, warning
from scheduler_project.env import nearest
from scheduler_project.startup import CannotStart, require_places

NOBODY = UUID(int=0)
LITTLE, VERY_LITTLE = 0.10, 0.03
SHORTEST_KEY = 50
GIB = 2**30


def check_logs() -> Iterator[Finding]:
    folder = settings.PUNCTUAL_LOG_DIR
    try:
        require_places()
    except CannotStart as refusal:
        yield failure("folder", str(refusal), "Make it, and let the user of workers write it.")
    else:
        yield ok("folder", f"{folder} can be written.")
    yield _on_disk()
    try:
        log_archive().attempts(NOBODY)
    except ArchiveUnavailable as error:
        yield away(
            error.message,
            "See PUNCTUAL_LOG_ARCHIVE and, for S3, what boto3 reads; logs wait on the workers' disks.",
        )
    else:
        yield ok("archive", "The archive answers.")


def _on_disk() -> Finding:
    usage = shutil.disk_usage(nearest(settings.PUNCTUAL_LOG_DIR))
    told = f"{usage.free / GIB:.1f} of {usage.total / GIB:.1f} GiB are free where logs are written."
    todo = "Make room, or lower PUNCTUAL_RETENTION or PUNCTUAL_LOG_LIMIT_BYTES."
    if usage.free < VERY_LITTLE * usage.total:
        return failure("disk", told, todo)
    return warning("disk", told, todo) if usage.free < LITTLE * usage.total else ok("disk", told)


def check_settings() -> Iterator[Finding]:
    try:
        key = settings.SECRET_KEY
    except ImproperlyConfigured:
        key = ""
    if key and len(key) < SHORTEST_KEY:
        told = f"SECRET_KEY has {len(key)} characters."
        yield warning(
            "secret_key", told, f"Give it {SHORTEST_KEY} random ones; sessions end with the old one."
        )
    elif key:
        yield ok("secret_key", "There is one, and it is long.")
    if settings.DEBUG:
        yield failure(
            "debug", "DEBUG is on.", "Unset DEBUG: errors show settings and code to whoever meets them."
        )
    else:
        yield ok("debug", "DEBUG is off.")
    if "*" in settings.ALLOWED_HOSTS:
        todo = "Name in ALLOWED_HOSTS the hosts under which the web server is reached."
        yield warning("allowed_hosts", "ALLOWED_HOSTS allows every name.", todo)
    else:
        yield ok("allowed_hosts", f"Reached as {', '.join(settings.ALLOWED_HOSTS)}.")
    yield from _on_checks()


def _on_checks() -> Iterator[Finding]:
    """Django's system checks, and Punctual's among them."""
    found = [message for message in checks.run_checks() if message.level >= checks.WARNING]
    for message in found:
        say = failure if message.is_serious() else warning
        identity = message.id or "django"
        yield say(identity, str(message.msg), str(message.hint or "See 'manage.py check'."))
    if not found:
        yield ok("checks", "'manage.py check' has nothing to say.")
