"""One row for each change that somebody made; django-auditlog's entry, with what Punctual asks it for.

Rows are added and never changed or deleted: a trigger of the database refuses it (migration 0001). So
nothing that they name has a constraint that would reach into them: they outlast users, teams and jobs.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from django.conf import settings
from django.contrib.contenttypes.models import ContentType
from django.db import models

from access.acting import actor
from access.masking import masked
from scheduler_project.kernel.clock import to_micros, utcnow

if TYPE_CHECKING:

    class _Entry(models.Model):
        object_repr = models.TextField()
        changes: models.JSONField[Any, Any] = models.JSONField(null=True)
        additional_data: models.JSONField[Any, Any] = models.JSONField(null=True)
        remote_addr = models.GenericIPAddressField(null=True)

        class Meta:
            abstract = True
else:
    from auditlog.models import AbstractLogEntry as _Entry

ACTIONS = ((0, "created"), (1, "changed"), (2, "deleted"), (3, "looked at"))  # as auditlog numbers them


def new_id() -> UUID:
    """A UUID of version 7 that sorts by time, to the quarter of a microsecond."""
    millis, micros = divmod(to_micros(utcnow()), 1000)
    value = millis << 80 | 7 << 76 | (micros << 2) << 64 | 2 << 62 | secrets.randbits(62)
    return UUID(int=value)


class ChangeRecord(_Entry):  # type: ignore[django-manager-missing]
    """``changes``: names and [before, after]. ``who`` stays readable when the user is gone.

    ``team_id``: whose members see it, None: superusers alone. ``job_id``: the job that it is about.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    content_type = models.ForeignKey(
        ContentType, on_delete=models.DO_NOTHING, db_constraint=False, db_index=False, related_name="+"
    )
    object_pk = models.CharField(max_length=255)
    object_id = models.BigIntegerField(null=True)
    action = models.PositiveSmallIntegerField(choices=ACTIONS)
    actor = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        on_delete=models.DO_NOTHING,
        null=True,
        db_constraint=False,
        db_index=False,
        related_name="+",
    )
    cid = models.CharField(max_length=255, null=True)
    timestamp = models.DateTimeField(default=utcnow)
    who = models.CharField(max_length=200, default="")
    what = models.CharField(max_length=40, default="")
    team_id = models.IntegerField(null=True)
    job_id = models.UUIDField(null=True)

    class Meta:
        verbose_name = "change"
        ordering: ClassVar[list[str]] = ["-id"]
        default_permissions = ("view",)
        indexes: ClassVar[list[Any]] = [
            models.Index(fields=["job_id", "-id"], name="change_of_job"),
            models.Index(fields=["team_id", "-id"], name="change_of_team"),
            models.Index(fields=["content_type", "object_pk", "-id"], name="change_of_object"),
        ]

    def __str__(self) -> str:
        return f"{self.what} {self.object_repr}"

    def save(self, *args: Any, **kwargs: Any) -> None:
        """Who it was, and what no trail keeps, is known here also for what django-auditlog notes by itself
        (users, groups, pools …).
        """
        self.what = self.what or dict(ACTIONS)[self.action]
        if not self.who:
            now_acting = actor()
            self.who, self.actor_id = now_acting.name, now_acting.user_id
            self.remote_addr = now_acting.address
            self.changes = {
                name: [masked(item) for item in value] if isinstance(value, list | tuple) else value
                for name, value in (self.changes or {}).items()
            }
        super().save(*args, **kwargs)
