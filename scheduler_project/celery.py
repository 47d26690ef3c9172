"""The Celery application: ``celery -A scheduler_project beat`` and ``… worker``."""

import logging.config
import os
from socket import gethostname
from typing import Any

import click
from celery import Celery
from celery.signals import beat_init, celeryd_init, setup_logging
from click.core import ParameterSource
from django.conf import settings

from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.startup import CannotStart, end_with, require_parts, require_places, set_up_django

set_up_django()  # Celery itself does it for worker and beat only; every other command reads the tasks too

# The celery command takes BROKER_URL as its --broker and leaves it here, where it goes before the setting,
# which has the address in the form that kombu reads.
os.environ.pop("CELERY_BROKER_URL", None)

app = Celery("scheduler_project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@celeryd_init.connect
def prepare_worker(instance: Any, **_: Any) -> None:
    """Refuse to start without what a worker needs (not the database: it never asks it), and name it.

    The queue of its remote control has that name: two workers of one name would share their commands.
    """
    try:
        require_parts("REDIS_URL", "BROKER_URL")
        require_places()
    except CannotStart as refusal:
        end_with(refusal)
    if not _is_given("hostname"):
        instance.hostname = f"worker-{os.getpid()}@{gethostname()}"


@beat_init.connect
def require_what_a_beat_needs(**_: Any) -> None:
    from beat.scheduler import check_shards  # needs the models

    try:
        require_parts("DATABASE_URL", "REDIS_URL", "BROKER_URL")
        check_shards()
    except (CannotStart, InvalidValue) as refusal:
        end_with(refusal)


@setup_logging.connect
def keep_django_logging(loglevel: int | None = None, **_: Any) -> None:
    """Celery would replace the handlers; Django's configuration is the one that holds.

    So does its level, unless ``-l`` was given: Celery hands on its default as if it had been.
    """
    logging.config.dictConfig(settings.LOGGING)
    if loglevel and _is_given("loglevel"):
        logging.getLogger().setLevel(loglevel)


def _is_given(option: str) -> bool:
    """Whether the option is on the command line; outside of one, what was passed was meant."""
    command = click.get_current_context(silent=True)
    return command is None or command.get_parameter_source(option) is not ParameterSource.DEFAULT
