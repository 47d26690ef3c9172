"""Tasks in the admin."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from unfold.admin import ModelAdmin as UnfoldAdmin

from access.admin_pages import NotThere
from jobs.admin_cells import condition_cell, with_runs
from jobs.admin_forms import TaskForm
from jobs.admin_shared import SharedByAll
from jobs.listing import visible_jobs
from jobs.models import Job, Task
from jobs.stored_schedules import schedule_text
from jobs.tasks import save_task
from scheduler_project.kernel.clock import utcnow

if TYPE_CHECKING:  # at run time the class takes no parameter
    _TaskAdmin = admin.ModelAdmin[Task]
else:
    _TaskAdmin = UnfoldAdmin

JOBS_SHOWN = 100  # of a task


class TaskAdmin(SharedByAll, NotThere, _TaskAdmin):
    form = TaskForm
    list_display = ("name", "type", "short_command", "image")
    list_filter = ("type",)
    search_fields = ("name",)

    def render_change_form(
        self, request: HttpRequest, context: dict[str, Any], *args: Any, **kwargs: Any
    ) -> HttpResponse:
        task: Task | None = context.get("original")
        if task is not None:
            context.update(_jobs_of(task, request))
        return super().render_change_form(request, context, *args, **kwargs)

    def save_model(self, request: HttpRequest, obj: Task, form: Any, change: Any) -> None:
        """Its jobs' waiting runs follow at once."""
        save_task(obj, utcnow())

    @admin.display(description="Command")
    def short_command(self, task: Task) -> str:
        return task.command if len(task.command) <= 80 else task.command[:77] + "…"


def _jobs_of(task: Task, request: HttpRequest) -> dict[str, Any]:
    """Those that the user sees, by name; how many there are beyond JOBS_SHOWN, and of others' teams."""
    seen = visible_jobs(request.user).filter(task=task)
    number, everybodys = seen.count(), Job.objects.filter(task=task, archived_at=None).count()
    jobs = with_runs(list(seen.order_by("name", "id")[:JOBS_SHOWN]))
    rows = [(job, condition_cell(job), schedule_text(job.schedule)) for job in jobs]
    return {"jobs": rows, "jobs_left": number - len(rows), "jobs_of_others": everybodys - number}
