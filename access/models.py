"""Permissions that say how much somebody may do, and tokens for REST."""

from __future__ import annotations

from datetime import datetime
from typing import Any, ClassVar
from uuid import uuid4

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.db.models.functions import Now

from access.levels import SCOPES, Level


class Access(models.Model):
    """No table: what the permissions ``access.view``, ``access.operate`` and ``access.edit`` belong to."""

    class Meta:
        managed = False
        default_permissions = ()
        permissions: ClassVar = [
            ("view", "Look at what is the own teams'"),
            ("operate", "Run, cancel, pause and resume what is the own teams'"),
            ("edit", "Make, change and delete jobs of the own teams"),
        ]


class ApiToken(models.Model):
    """What lets a program in over REST as its user. The text itself is nowhere: only its SHA-256 is kept.

    It counts until ``expires_at`` or ``revoked_at``, and while its user is active. ``prefix``: how the text
    begins, by which people tell tokens apart. ``last_used_at``: exact to a minute.
    """

    id = models.UUIDField(primary_key=True, default=uuid4, editable=False)
    name = models.CharField(max_length=100, help_text="What it is for.")
    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="api_tokens")
    digest = models.BinaryField(max_length=32, unique=True, editable=False)
    prefix = models.CharField(max_length=20, editable=False)
    scope = models.CharField(max_length=10, choices=[(scope, scope) for scope in SCOPES], default="read")
    created_at = models.DateTimeField(db_default=Now(), editable=False)
    expires_at = models.DateTimeField(null=True, blank=True, help_text="UTC. Empty: never.")
    revoked_at = models.DateTimeField(null=True, editable=False)
    last_used_at = models.DateTimeField(null=True, editable=False)

    class Meta:
        verbose_name = "token"
        constraints: ClassVar[Any] = [
            models.UniqueConstraint(
                fields=["user", "name"], condition=Q(revoked_at=None), name="token_name_unique_per_user"
            ),
            models.CheckConstraint(condition=Q(scope__in=list(SCOPES)), name="token_scope_known"),
        ]

    def __str__(self) -> str:
        return f"{self.name} ({self.prefix}…)"

    def condition(self, now: datetime) -> str:
        if self.revoked_at is not None:
            return "revoked"
        return "expired" if self.expires_at is not None and self.expires_at <= now else "in force"

    @property
    def level(self) -> Level:
        """The most that it may do."""
        return SCOPES[self.scope]
