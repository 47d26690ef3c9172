from django.apps import AppConfig


class PunctualConfig(AppConfig):
    name = "scheduler_project"
    verbose_name = "Punctual"
