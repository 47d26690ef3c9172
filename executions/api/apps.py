from django.apps import AppConfig


class RestConfig(AppConfig):
    name = "executions.api"
    label = "rest"
    verbose_name = "REST"
