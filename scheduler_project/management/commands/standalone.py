"""``manage.py standalone``: the whole system in one process tree; Ctrl-C stops it in order."""

from __future__ import annotations

import os
import sys
from typing import Any, NoReturn

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError, CommandParser

from scheduler_project.standalone.options import BASE_DIR, Options
from scheduler_project.startup import CannotStart, end_with, require_places


class Command(BaseCommand):
    help = (
        "Start the whole system as one process tree: PostgreSQL and Valkey (unless DATABASE_URL, REDIS_URL,"
        " BROKER_URL are given), web server, beat, worker, recorder, auditor. Ctrl-C stops it in order,"
        " a second Ctrl-C at once."
    )
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--demo", action="store_true", help="with demo user, API token and demo jobs")
        parser.add_argument(
            "--once", action="store_true", help="with --demo: exit when each demo job has had one run"
        )

    def handle(self, *_args: Any, **options: Any) -> NoReturn:
        if options["once"] and not options["demo"]:
            raise CommandError("--once needs --demo.")
        try:
            require_places()
        except CannotStart as refusal:
            end_with(refusal)
        wanted = Options(
            home=str(settings.PUNCTUAL_HOME),
            port=settings.PUNCTUAL_PORT,
            demo=options["demo"],
            once=options["once"],
        )
        become_supervisor(wanted)


def become_supervisor(options: Options) -> NoReturn:
    """Go on as the supervisor, which must not have read any settings (see scheduler_project.standalone)."""
    sys.stdout.flush()
    sys.stderr.flush()
    os.chdir(BASE_DIR)
    command = [sys.executable, "-m", "scheduler_project.standalone", options.to_text()]
    os.execv(sys.executable, command)  # noqa: S606 -- no shell
