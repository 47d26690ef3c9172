"""What this deployment lets jobs do with their containers: its settings as one value."""

from __future__ import annotations

from django.conf import settings

from containers.allowed import SAFE_POD_FIELDS, Allowed


def allowed_here() -> Allowed:
    """The policy of this process. The images that the deployment sets for the types are allowed always, and
    so is its memory limit."""
    most_memory = settings.PUNCTUAL_ALLOW_MEMORY_BYTES
    return Allowed(
        images=(*settings.PUNCTUAL_ALLOW_IMAGES, *settings.PUNCTUAL_IMAGES.values()),
        secrets=tuple(settings.PUNCTUAL_ALLOW_SECRETS),
        volumes=tuple(settings.PUNCTUAL_ALLOW_VOLUMES),
        networks=tuple(settings.PUNCTUAL_ALLOW_NETWORKS),
        users=tuple(settings.PUNCTUAL_ALLOW_USERS),
        service_accounts=tuple(settings.PUNCTUAL_ALLOW_SERVICE_ACCOUNTS),
        pull_secrets=tuple(settings.PUNCTUAL_ALLOW_PULL_SECRETS),
        pod_template=tuple(settings.PUNCTUAL_ALLOW_POD_TEMPLATE) or SAFE_POD_FIELDS,
        cpus=settings.PUNCTUAL_ALLOW_CPUS,
        memory_bytes=most_memory and max(most_memory, settings.PUNCTUAL_MEMORY_BYTES),
        ephemeral_bytes=settings.PUNCTUAL_ALLOW_EPHEMERAL_BYTES,
        gpus=settings.PUNCTUAL_ALLOW_GPUS,
        pids=settings.PUNCTUAL_ALLOW_PIDS,
    )
