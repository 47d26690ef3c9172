"""What the commands of the two event consumers have in common."""

from __future__ import annotations

import logging
import threading
from typing import Any

from django.core.management.base import BaseCommand

from executions.bus.consuming import BatchConsumer
from scheduler_project.kernel.loop import run_until, stop_on_signals

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
        logger.info("started", extra={"service": self.service})
        try:
            run_until(stop, consumer.run_once, name=self.service)
        finally:
            consumer.close()
            logger.info("stopped", extra={"service": self.service})
