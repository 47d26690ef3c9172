"""What the admin's sidebar leads to."""

from __future__ import annotations

from typing import Any

from django.apps import apps
from django.http import HttpRequest
from django.urls import reverse

DEAD_LETTERS = "admin:dead_letters"

# Groups of the sidebar: what is written, its Material symbol, and the model or the name of the page.
SIDEBAR: tuple[tuple[str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "Scheduling",
        (
            ("Overview", "dashboard", "admin:index"),
            ("Jobs", "event_repeat", "jobs.job"),
            ("Runs", "play_circle", "executions.execution"),
            ("Calendar", "calendar_month", "admin:calendar"),
            ("Tasks", "task", "jobs.task"),
            ("Pools", "stacks", "jobs.pool"),
        ),
    ),
    (
        "Administration",
        (
            ("Tokens", "key", "access.apitoken"),
            ("Users", "person", "auth.user"),
            ("Groups", "group", "auth.group"),
            ("Changes", "history", "trail.changerecord"),
            ("Dead letters", "report", DEAD_LETTERS),
            ("Housekeeping", "mop", "django_celery_results.taskresult"),
        ),
    ),
)


def titles() -> dict[str, str]:
    """What the sidebar calls each model's pages."""
    return {target: text for _, entries in SIDEBAR for text, _, target in entries if ":" not in target}


def navigation(request: HttpRequest) -> list[dict[str, Any]]:
    """The sidebar in unfold's form: only what the user of ``request`` may open."""
    groups: list[dict[str, Any]] = []
    for title, entries in SIDEBAR:
        items = [
            {"title": text, "icon": symbol, "link": link, **_badge(target)}
            for text, symbol, target in entries
            if (link := _link(request, target))
        ]
        groups.append({"title": title, "separator": bool(groups), "items": items})
    return [group for group in groups if group["items"]]


def _badge(target: str) -> dict[str, Any]:
    from executions.dead_letters import waiting

    number = waiting() if target == DEAD_LETTERS else None
    return {"badge": number} if number else {}


def _link(request: HttpRequest, target: str) -> str:
    """The address of a page, or of a model's list; empty where it may not be seen."""
    from django.contrib import admin

    from executions.dead_letters import may_look

    if target == DEAD_LETTERS and not may_look(request.user):
        return ""
    if ":" in target:
        return reverse(target)
    model = apps.get_model(target)
    if not admin.site.get_model_admin(model).has_view_or_change_permission(request):
        return ""
    return reverse(f"admin:{model._meta.app_label}_{model._meta.model_name}_changelist")
