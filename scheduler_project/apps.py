from collections.abc import Sequence
from typing import Any

from django.apps import AppConfig
from django.contrib import admin
from django.contrib.admin.apps import SimpleAdminConfig
from django.contrib.admin.checks import check_admin_app, check_dependencies
from django.core import checks


class PunctualConfig(AppConfig):
    name = "scheduler_project"
    verbose_name = "Punctual"

    def ready(self) -> None:
        from scheduler_project.checks import CHECKS, PART_CHECKS

        for check in CHECKS:
            checks.register(check)
        for name, part_check in PART_CHECKS.items():
            checks.register(part_check, name)


class PunctualAdminConfig(SimpleAdminConfig):
    """The admin's pages are loaded with the addresses (urls.py), and where they are checked.

    So no beat, worker, recorder or auditor loads them when it starts.
    """

    default_site = "scheduler_project.admin_site.PunctualAdminSite"

    def ready(self) -> None:
        checks.register(check_dependencies, checks.Tags.admin)
        checks.register(check_pages, checks.Tags.admin)


def check_pages(app_configs: Sequence[AppConfig] | None, **options: Any) -> Sequence[checks.CheckMessage]:
    """Django's own checks of the admin, of all pages."""
    admin.autodiscover()
    return check_admin_app(app_configs, **options)
