"""Addresses below /api/v1/jobs."""

from django.urls import path

from jobs.api import previews, runs, views

urlpatterns = [
    path("jobs", views.JobList.as_view(), name="job-list"),
    path("jobs/<str:job_id>", views.JobDetail.as_view(), name="job-detail"),
    path("jobs/<str:job_id>/pause", views.JobPause.as_view(), name="job-pause"),
    path("jobs/<str:job_id>/resume", views.JobResume.as_view(), name="job-resume"),
    path("jobs/<str:job_id>/run", runs.JobRun.as_view(), name="job-run"),
    path("jobs/<str:job_id>/backfill", runs.JobBackfill.as_view(), name="job-backfill"),
    path("jobs/<str:job_id>/preview", previews.JobPreview.as_view(), name="job-preview"),
    path("schedules/preview", previews.SchedulePreview.as_view(), name="schedule-preview"),
]
