"""The bodies of the Python processes: each is the command that it stands for, in a forked interpreter."""

from __future__ import annotations

import gc
import importlib
import logging
import signal
import socket
import sys
from collections.abc import Callable
from types import FrameType

from scheduler_project.startup import run_command

WEB_THREADS = 4  # beside those that follow logs
MAX_BODY_BYTES = 4 << 20  # waitress spools bodies before anybody has shown who it is; its own limit is 1 GiB
WARM = (
    "celery.__main__",
    "celery.apps.beat",
    "celery.apps.worker",
    "celery.bin.celery",
    "celery.concurrency.solo",
    "celery.concurrency.thread",
    "celery.fixups.django",
    "celery.loaders.app",
    "celery.worker.consumer",
    "celery.worker.strategy",
    "containers.registry",
    "containers.supervise",
    "django.contrib.admin.sites",
    "django.contrib.messages.storage.fallback",
    "django.core.cache.backends.locmem",
    "django.core.handlers.wsgi",
    "django.core.management.commands.check",
    "django.db.backends.postgresql.base",
    "django.db.migrations.executor",
    "django.db.models",
    "django.forms.models",
    "django.template.backends.django",
    "django.template.loader_tags",
    "django.urls",
    "django.views.static",
    "jinja2.sandbox",
    "kombu.transport.pyamqp",
    "kombu.transport.redis",
    "psycopg",
    "redis",
    "setproctitle",
    "waitress",
    "whitenoise.middleware",
)


def warm_up() -> None:
    """Import what the children share. Nothing of it may read settings, connect or start a thread."""
    for name in WARM:
        importlib.import_module(name)
    import setproctitle

    setproctitle.getproctitle()  # it finds its place in memory only before the environment changes
    gc.collect()
    gc.freeze()


def manage(*words: str) -> Callable[[], int]:
    """``manage.py`` with these words."""

    def body() -> int:
        sys.argv = ["manage.py", *words]
        run_command(sys.argv)
        return 0

    return body


def celery(*words: str) -> Callable[[], int]:
    """``python -m celery`` with these words."""

    def body() -> int:
        from celery.__main__ import main

        sys.argv = ["celery", *words]
        main()
        return 0

    return body


def web(bound: socket.socket) -> Callable[[], int]:
    """The web server on a socket that is bound already; SIGTERM lets it answer what it has begun."""

    def body() -> int:
        import waitress

        from scheduler_project.wsgi import application

        from django.conf import settings  # isort: skip -- they are read by now
        from executions.api.log_stream import leave  # isort: skip

        def end(_number: int, _frame: FrameType | None) -> None:
            leave()
            raise SystemExit(0)

        signal.signal(signal.SIGTERM, end)
        logging.getLogger("waitress.queue").setLevel(logging.ERROR)  # a request that waits is no fault
        threads = WEB_THREADS + settings.PUNCTUAL_LOG_FOLLOWERS
        waitress.serve(
            application,
            sockets=[bound],
            threads=threads,
            ident=None,
            max_request_body_size=MAX_BODY_BYTES,
        )
        return 0

    return body
