"""What REST itself remembers."""

from __future__ import annotations

from typing import Any, ClassVar

from django.conf import settings
from django.db import models


class KeptAnswer(models.Model):
    """What was answered to a request with an idempotency key; ``digest``: of what was asked with it."""

    user = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.CASCADE)
    key = models.CharField(max_length=255)
    digest = models.BinaryField()
    body = models.JSONField(null=True)
    location = models.TextField(default="")
    created_at = models.DateTimeField()

    class Meta:
        constraints: ClassVar[list[Any]] = [
            models.UniqueConstraint(fields=["user", "key"], name="kept_answer_once_per_key"),
        ]

    def __str__(self) -> str:
        return self.key
