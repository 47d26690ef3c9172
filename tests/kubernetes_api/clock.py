"""The cluster's clock, by which it writes and ends things; ``ahead`` of this host's where a test says so."""

from __future__ import annotations

from datetime import datetime, timedelta

from scheduler_project.kernel.clock import utcnow

ahead = timedelta(0)


def cluster_now() -> datetime:
    return utcnow() + ahead
