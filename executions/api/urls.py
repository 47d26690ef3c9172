"""Addresses below /api/v1/executions and /api/v1/dead-letters."""

from django.urls import path

from executions.api import views
from executions.api.dead_letters import DeadLetterDiscard, DeadLetterList, DeadLetterReplay
from executions.api.logs import ExecutionLogs
from executions.api.reports import ExecutionStatus
from executions.api.retries import ExecutionRetry
from executions.api.why import ExecutionWhy

urlpatterns = [
    path("executions", views.ExecutionList.as_view(), name="execution-list"),
    path("executions/<str:execution_id>", views.ExecutionDetail.as_view(), name="execution-detail"),
    path("executions/<str:execution_id>/events", views.ExecutionHistory.as_view(), name="execution-events"),
    path("executions/<str:execution_id>/why", ExecutionWhy.as_view(), name="execution-why"),
    path("executions/<str:execution_id>/logs", ExecutionLogs.as_view(), name="execution-logs"),
    path("executions/<str:execution_id>/cancel", views.ExecutionCancel.as_view(), name="execution-cancel"),
    path("executions/<str:execution_id>/status", ExecutionStatus.as_view(), name="execution-status"),
    path("executions/<str:execution_id>/retry", ExecutionRetry.as_view(), name="execution-retry"),
    path(
        "executions/<str:execution_id>/reschedule",
        views.ExecutionReschedule.as_view(),
        name="execution-reschedule",
    ),
    path("dead-letters", DeadLetterList.as_view(), name="dead-letter-list"),
    path("dead-letters/replay", DeadLetterReplay.as_view(), name="dead-letter-replay"),
    path("dead-letters/discard", DeadLetterDiscard.as_view(), name="dead-letter-discard"),
]
