"""The admin as a whole: its name, and what stands first on its front page."""

from __future__ import annotations

from typing import Any

from django.contrib.admin import AdminSite
from django.http import HttpRequest

FIRST = ("jobs", "executions")  # what people come for; the rest in Django's order


class PunctualAdminSite(AdminSite):
    site_header = site_title = "Punctual"
    index_title = "Jobs and their runs"
    site_url = None  # there is no other site to view
    enable_nav_sidebar = False  # its width is what the list of runs needs

    def get_app_list(self, request: HttpRequest, app_label: str | None = None) -> list[Any]:
        apps = super().get_app_list(request, app_label)
        places = {label: place for place, label in enumerate(FIRST)}
        return sorted(apps, key=lambda app: places.get(app["app_label"], len(FIRST)))
