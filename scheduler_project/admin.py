"""What Celery keeps of the housekeeping tasks (the runs of jobs are executions), in the admin: to look at."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from django.contrib import admin
from django.http import HttpRequest
from django_celery_results import admin as celery_results  # it registers its own two pages first
from django_celery_results.models import GroupResult, TaskResult

if TYPE_CHECKING:  # at run time the class takes no parameter
    _ResultAdmin = admin.ModelAdmin[TaskResult]
else:
    _ResultAdmin = celery_results.TaskResultAdmin

admin.site.unregister([GroupResult, TaskResult])  # no task is sent in a group


@admin.register(TaskResult)
class TaskResultAdmin(_ResultAdmin):
    """Made by the workers alone."""

    date_hierarchy = None
    list_display = ("task_id", "task_name", "date_done", "status", "worker")
    list_filter: ClassVar[Any] = ("status",)
    search_fields = ("task_id",)
    show_full_result_count = False
    show_facets = admin.ShowFacets.NEVER

    def has_add_permission(self, request: HttpRequest) -> bool:
        return False

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return False
