"""The ASGI entry point: ``uvicorn scheduler_project.asgi:application``."""

from django.core.asgi import get_asgi_application

from scheduler_project.startup import read_settings

read_settings()

application = get_asgi_application()
