"""Which address leads where."""

from django.contrib import admin
from django.http import HttpRequest, HttpResponse
from django.urls import include, path, re_path
from django.views.generic import RedirectView

from scheduler_project.problems import unknown_address


def alive(_request: HttpRequest) -> HttpResponse:
    """This process answers; it asks no other part."""
    return HttpResponse("ok\n", content_type="text/plain")


urlpatterns = [
    path("", RedirectView.as_view(url="/admin/")),
    path("healthz", alive),
    path("favicon.ico", RedirectView.as_view(url="/static/executions/icon.svg")),
    path("admin/", admin.site.urls),
    path("api/v1/", include("jobs.api.urls")),
    path("api/v1/", include("executions.api.urls")),
    re_path(r"^api(?:/|$)", unknown_address),
]

handler400 = "scheduler_project.problems.bad_request"
handler403 = "scheduler_project.problems.permission_denied"
handler404 = "scheduler_project.problems.page_not_found"
handler500 = "scheduler_project.problems.server_error"
