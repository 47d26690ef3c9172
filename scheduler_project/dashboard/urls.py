"""Addresses of what tells of all parts at once, below /api/v1/."""

from django.urls import path

from scheduler_project.dashboard.api import OverviewPage

urlpatterns = [path("overview", OverviewPage.as_view(), name="overview")]
