from django.apps import AppConfig


class TrailConfig(AppConfig):
    name = "access.trail"
    verbose_name = "Audit trail"
