"""What this deployment sets for all runs, from its settings."""

from __future__ import annotations

import os

from django.conf import settings

from executions.allowance import allowed_here
from executions.worker.commands import RunDefaults


def configured_defaults() -> RunDefaults:
    """What a worker of this deployment goes by, without its secrets."""
    return RunDefaults(
        # Plain processes have none: an image that reaches them is one that somebody asked for.
        images={} if settings.PUNCTUAL_RUNTIME == "process" else settings.PUNCTUAL_IMAGES,
        passed_env={name: os.environ[name] for name in settings.PUNCTUAL_RUN_ENV if name in os.environ},
        memory_bytes=settings.PUNCTUAL_MEMORY_BYTES,
        start_timeout=settings.PUNCTUAL_START_TIMEOUT,
        grace=settings.PUNCTUAL_GRACE,
        allowed=allowed_here(),
        namespace=settings.PUNCTUAL_NAMESPACE,
    )
