"""The admin's pages of the dashboard and the calendar: shells that scripts fill from REST."""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.urls import reverse

ANY = UUID(int=0)
"""Stands in an address where the script puts an id."""


def addresses() -> dict[str, Any]:
    """Where the pages lead to."""
    return {
        "job_page": reverse("admin:jobs_job_change", args=[ANY]),
        "run_page": reverse("admin:executions_execution_change", args=[ANY]),
    }
