"""Addresses of jobs, their pools and their schedules, below /api/v1/."""

from django.urls import path

from jobs.api import calendar, pools, previews, rendering, runs, tasks, views
from jobs.api.trail import JobChanges

urlpatterns = [
    path("jobs", views.JobList.as_view(), name="job-list"),
    path("jobs/<str:job_id>", views.JobDetail.as_view(), name="job-detail"),
    path("jobs/<str:job_id>/pause", views.JobPause.as_view(), name="job-pause"),
    path("jobs/<str:job_id>/resume", views.JobResume.as_view(), name="job-resume"),
    path("jobs/<str:job_id>/run", runs.JobRun.as_view(), name="job-run"),
    path("jobs/<str:job_id>/backfill", runs.JobBackfill.as_view(), name="job-backfill"),
    path("jobs/<str:job_id>/changes", JobChanges.as_view(), name="job-changes"),
    path("jobs/<str:job_id>/preview", previews.JobPreview.as_view(), name="job-preview"),
    path("jobs/<str:job_id>/render", rendering.JobRender.as_view(), name="job-render"),
    path("calendar", calendar.CalendarWeek.as_view(), name="calendar"),
    path("calendar/minute", calendar.CalendarOfMinute.as_view(), name="calendar-minute"),
    path("pools", pools.PoolList.as_view(), name="pool-list"),
    path("pools/<str:name>", pools.PoolDetail.as_view(), name="pool-detail"),
    path("tasks", tasks.TaskList.as_view(), name="task-list"),
    path("tasks/<str:task_id>", tasks.TaskDetail.as_view(), name="task-detail"),
    path("schedules/preview", previews.SchedulePreview.as_view(), name="schedule-preview"),
]
