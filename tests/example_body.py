"""The job of the README, as the body of ``POST /api/v1/jobs``; tests vary it."""

from __future__ import annotations

from typing import Any

BODY: dict[str, Any] = {
    "name": "daily-sales-etl",
    "type": "Python",
    "command": "python etl/daily_sales_pipeline.py",
    "schedule": "0 2 * * *",
    "parameters": {"execution_date": "{{ ds }}"},
    "retries": 3,
    "retryDelay": "5m",
    "timeout": "60m",
    "owner": "data-engineering",
}
