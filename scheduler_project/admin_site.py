"""The admin as a whole: its name, and what stands first on its front page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from django.contrib.admin import AdminSite
from django.http import Http404, HttpRequest, HttpResponse
from django.template.response import TemplateResponse
from django.urls import URLPattern, path, reverse
from unfold.sites import UnfoldAdminSite

from executions.admin_dead_letters import dead_letters_page
from executions.dead_letters import may_look
from scheduler_project.dashboard.pages import addresses

FIRST = ("jobs", "executions")  # what people come for; the rest in Django's order


if TYPE_CHECKING:  # unfold has no types
    _AdminSite = AdminSite
else:
    _AdminSite = UnfoldAdminSite


class PunctualAdminSite(_AdminSite):
    """unfold's, with what Punctual is called."""

    site_header = site_title = "Punctual"
    index_title = "Jobs and their runs"
    site_url = None  # there is no other site to view

    index_template = "admin/dashboard.html"

    def extra_urls(self) -> list[URLPattern]:
        return [
            path("calendar/", self.admin_view(self.calendar), name="calendar"),
            path("dead-letters/", self.admin_view(self.dead_letters), name="dead_letters"),
            path("r/<path:kind>/<path:number>/", self.admin_view(self.on_site), name="view_on_site"),
        ]

    def index(self, request: HttpRequest, extra_context: dict[str, Any] | None = None) -> TemplateResponse:
        return super().index(request, {**addresses(), **_dead_letters_of(request), **(extra_context or {})})

    def calendar(self, request: HttpRequest) -> TemplateResponse:
        """The starts of the coming week."""
        context = {**self.each_context(request), **addresses(), "title": "Calendar"}
        return TemplateResponse(request, "admin/calendar.html", context)

    def dead_letters(self, request: HttpRequest) -> HttpResponse:
        """What nobody could read or apply."""
        return dead_letters_page(request, self.each_context(request))

    def on_site(self, request: HttpRequest, kind: str, number: str) -> NoReturn:
        """In place of Django's, which looks for any row of any table that a content type names."""
        raise Http404(f"Nothing has a page outside of the admin: {kind}/{number}.")

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        found = super().get_app_list(request, app_label)
        places = {label: place for place, label in enumerate(FIRST)}
        return sorted(found, key=lambda app: places.get(app["app_label"], len(FIRST)))


def _dead_letters_of(request: HttpRequest) -> dict[str, str]:
    """Where the dashboard leads to when there are any: nowhere for who may not look at them."""
    return {"dead_letters_page": reverse("admin:dead_letters")} if may_look(request.user) else {}
