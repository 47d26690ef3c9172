"""Which jobs a list has."""

from __future__ import annotations

import django_filters
from django.db.models import Q, QuerySet

from executions.api.orders import Orders
from executions.priorities import Priority
from jobs.models import Job, WorkType

ORDERS = Orders({"name": "name", "createdAt": "created_at"})
STATUSES = [("active", "active"), ("paused", "paused")]


class JobFilter(django_filters.FilterSet):  # type: ignore[misc]
    """Texts are compared as they are, but for ``search``, for which capitals are as good as small letters."""

    owner = django_filters.CharFilter("owner__name", strip=False, help_text="Only those of this team.")
    name = django_filters.CharFilter("name", strip=False, help_text="Only those of this name.")
    type = django_filters.ChoiceFilter(choices=WorkType.choices, help_text="Only those of this type.")
    status = django_filters.ChoiceFilter(
        choices=STATUSES, method="of_status", help_text="Only those that are paused, or that are not."
    )
    queue = django_filters.CharFilter("queue", strip=False, help_text="Only those of this queue.")
    priority = django_filters.ChoiceFilter(
        choices=[(str(item), str(item)) for item in Priority], help_text="Only those of this priority."
    )
    pool = django_filters.CharFilter("pool__name", strip=False, help_text="Only those that name this pool.")
    task = django_filters.CharFilter("task__name", strip=False, help_text="Only those that run this task.")
    search = django_filters.CharFilter(
        method="with_words", strip=False, help_text="Only those with this in their name or description."
    )

    def of_status(self, jobs: QuerySet[Job], _name: str, value: str) -> QuerySet[Job]:
        return jobs.filter(paused_at__isnull=value == "active")

    def with_words(self, jobs: QuerySet[Job], _name: str, value: str) -> QuerySet[Job]:
        return jobs.filter(Q(name__icontains=value) | Q(description__icontains=value))
