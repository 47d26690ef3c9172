"""What the commands of the two event consumers have in common."""

from __future__ import annotations

import logging
import threading
from typing import Any

from django.core.management.base import BaseCommand

from executions.alive import say_alive
from executions.attendance import Attendance
from executions.bus.consuming import BatchConsumer
from executions.store import default_store
from scheduler_project.kernel.loop import run_until, stop_on_signals
from scheduler_project.kernel.pulse import DATABASE_WITHIN_S

logger = logging.getLogger(__name__)


class ConsumerCommand(BaseCommand):
    """Runs a consumer until SIGTERM or SIGINT; the batch in hand is finished first."""

    service = ""
    requires_system_checks = ("DATABASE_URL", "REDIS_URL", "BROKER_URL")  # that each has an address
    requires_migrations_checks = False

    def consumer(self) -> BatchConsumer:
        raise NotImplementedError

    def handle(self, *args: Any, **options: Any) -> None:
        stop = threading.Event()
        stop_on_signals(stop)
        consumer = self.consumer()
        say_alive()
        attendance = Attendance(default_store(), consumer.queue)
        logger.info("started", extra={"service": self.service})
        try:
            run_until(stop, consumer.run_once, name=self.service, within_s=DATABASE_WITHIN_S)
        finally:
            attendance.close()
            consumer.close()
            logger.info("stopped", extra={"service": self.service})
