from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AccessConfig(AppConfig):
    name = "access"
    verbose_name = "Access"

    def ready(self) -> None:
        from access.roles import make_role_groups

        # Behind Django's own handler, which makes the permissions: django.contrib.auth stands first.
        post_migrate.connect(make_role_groups, sender=self)
