"""The WSGI entry point: ``waitress-serve scheduler_project.wsgi:application``."""

from django.core.wsgi import get_wsgi_application

from scheduler_project.startup import read_settings

read_settings()

application = get_wsgi_application()
