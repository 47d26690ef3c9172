"""How times, states and links look in the admin."""

from __future__ import annotations

import json
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from django.urls import reverse
from django.utils.html import format_html, format_html_join
from django.utils.safestring import SafeString

from scheduler_project.kernel.durations import format_duration

NOTHING = "–"


def time_cell(instant: datetime | None, *, exact: bool = False) -> str:
    """To the second, or to the millisecond where ``exact``, in UTC, until ``local-times.js`` has come."""
    if instant is None:
        return NOTHING
    at = instant.astimezone(UTC)
    precision = "millisecond" if exact else "second"
    return format_html(
        '<time datetime="{}" data-precision="{}">{} UTC</time>',
        at.isoformat(),
        precision,
        at.replace(tzinfo=None).isoformat(sep=" ", timespec=f"{precision}s"),
    )


def length_cell(length: timedelta | None) -> str:
    """As people say it: 71 ms, 1.005 s, 1m30s."""
    if length is None:
        return NOTHING
    milliseconds = max(length, timedelta(0)) // timedelta(milliseconds=1)
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    if milliseconds < 10_000:
        return f"{milliseconds / 1000:.3f} s"
    return format_duration(timedelta(seconds=milliseconds // 1000))


def state_cell(state: str) -> SafeString:
    return format_html('<span class="state {}">{}</span>', state_class(state), state)


def state_class(state: str) -> str:
    return "state-" + state.lower().replace(" ", "-")


def json_cell(value: Any) -> str:
    if not value:
        return NOTHING
    text = json.dumps(value, indent=2, ensure_ascii=False)
    return format_html('<pre class="punctual-text">{}</pre>', text)


def text_cell(value: str) -> str:
    return format_html('<pre class="punctual-text">{}</pre>', value) if value else NOTHING


def job_link(job_id: UUID, name: str) -> SafeString:
    return format_html('<a href="{}">{}</a>', reverse("admin:jobs_job_change", args=[job_id]), name)


def run_links(runs: Iterable[UUID]) -> str:
    """Each run by its id; NOTHING where there is none."""
    links = [(reverse("admin:executions_execution_change", args=[run]), run) for run in runs]
    return format_html_join(", ", '<a href="{}">{}</a>', links) or NOTHING


def runs_link(job_id: UUID, text: str) -> SafeString:
    address = reverse("admin:executions_execution_changelist")
    return format_html('<a href="{}?job={}">{}</a>', address, job_id, text)
