"""Addresses below /api/v1/executions."""

from django.urls import path

from executions.api import views

urlpatterns = [
    path("executions", views.ExecutionList.as_view(), name="execution-list"),
    path("executions/<str:execution_id>", views.ExecutionDetail.as_view(), name="execution-detail"),
    path("executions/<str:execution_id>/events", views.ExecutionHistory.as_view(), name="execution-events"),
    path("executions/<str:execution_id>/logs", views.ExecutionLogs.as_view(), name="execution-logs"),
    path("executions/<str:execution_id>/cancel", views.ExecutionCancel.as_view(), name="execution-cancel"),
    path(
        "executions/<str:execution_id>/reschedule",
        views.ExecutionReschedule.as_view(),
        name="execution-reschedule",
    ),
]
