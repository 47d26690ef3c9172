from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig
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


class PunctualAdminConfig(AdminConfig):
    default_site = "scheduler_project.admin_site.PunctualAdminSite"
