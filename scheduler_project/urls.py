"""Which address leads where."""

from django.contrib import admin
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from scheduler_project.documentation import RedocPage, SchemaView, SwaggerPage
from scheduler_project.problems import unknown_address

admin.autodiscover()

urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("favicon.ico", RedirectView.as_view(url="/static/punctual/icon.svg")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("jobs.api.urls")),
    path("api/v1/", include("executions.api.urls")),
    path("api/v1/", include("scheduler_project.dashboard.urls")),
    path("api/v1/", include("scheduler_project.tokens.urls")),
    path("api/v1/", include("scheduler_project.accounts.urls")),
    path("api/v1/schema", SchemaView.as_view(), name="schema"),
    path("api/v1/docs", SwaggerPage.as_view(), name="swagger"),
    path("api/v1/redoc", RedocPage.as_view(), name="redoc"),
    re_path(r"^api(?:/|$)", unknown_address),
]

handler400 = "scheduler_project.problems.bad_request"
handler403 = "scheduler_project.problems.permission_denied"
handler404 = "scheduler_project.problems.page_not_found"
handler500 = "scheduler_project.problems.server_error"
