"""Every address that the URLconf has, so that a test about all of them forgets none."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from django.contrib import admin
from django.urls import get_resolver

METHODS = ("get", "patch", "put", "post", "delete")
PARAMETER = re.compile(r"<(?:\w+:)?(\w+)>")


@dataclass(frozen=True)
class Route:
    """``path``: ``/api/v1/jobs/{job_id}``; ``takes``: the names in it; ``model``: of a page of the admin."""

    path: str
    name: str
    takes: tuple[str, ...]
    methods: tuple[str, ...]
    model: str = ""

    def __str__(self) -> str:
        return self.path


def rest_routes() -> list[Route]:
    return [_route(path, pattern) for path, pattern in _walk() if path.startswith("/api/v1/")]


def admin_routes() -> list[Route]:
    """But for the one that catches what is no address."""
    found = [_route(path, pattern) for path, pattern in _walk() if path.startswith("/admin/")]
    return [route for route in found if "(?P" not in route.path]


def _route(path: str, pattern: Any) -> Route:
    view = getattr(pattern.callback, "cls", None) or getattr(pattern.callback, "view_class", None)
    pages = (label for label in _models() if path.startswith(f"/admin/{label.replace('.', '/')}/"))
    methods = tuple(method for method in METHODS if view is None or hasattr(view, method))
    return Route(
        path=PARAMETER.sub(r"{\1}", path),
        name=pattern.name or "",
        takes=tuple(PARAMETER.findall(path)),
        methods=methods,
        model=next(pages, ""),
    )


def _models() -> list[str]:
    admin.autodiscover()
    return [model._meta.label_lower for model in admin.site._registry]


def _walk(resolver: Any = None, before: str = "/") -> Iterator[tuple[str, Any]]:
    for pattern in (resolver or get_resolver()).url_patterns:
        path = before + str(pattern.pattern)
        if hasattr(pattern, "url_patterns"):
            yield from _walk(pattern, path)
        else:
            yield path, pattern
