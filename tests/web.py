"""A web server in this process: waitress over the project's WSGI application, as ``standalone`` starts it."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import waitress
from django.db import connections

from scheduler_project.standalone.programs import MAX_BODY_BYTES, WEB_THREADS
from scheduler_project.wsgi import application


@contextmanager
def web_server(followers: int) -> Iterator[str]:
    """Its address. For tests whose database others see (``transaction=True``)."""
    database = connections.settings["default"]
    kept, database["CONN_MAX_AGE"] = database["CONN_MAX_AGE"], 0  # a thread that ends leaves none open
    bound = socket.create_server(("127.0.0.1", 0))
    server = waitress.create_server(
        application,
        sockets=[bound],
        threads=WEB_THREADS + followers,
        max_request_body_size=MAX_BODY_BYTES,
    )
    thread = threading.Thread(target=server.run, name="web")
    thread.start()
    try:
        yield f"http://127.0.0.1:{bound.getsockname()[1]}"
    finally:
        server.task_dispatcher.shutdown()
        server.trigger.pull_trigger(server.close)
        thread.join(10)
        database["CONN_MAX_AGE"] = kept
