"""What tasks and pools have in common in the admin: all staff read them, permissions allow changes."""

from __future__ import annotations

from typing import Any

from django.contrib.auth import get_permission_codename
from django.http import HttpRequest

from access.policy import has_permission


class SharedByAll:
    """For a ModelAdmin. Django's permissions count only for who may edit (access/policy.py)."""

    opts: Any

    def has_module_permission(self, request: HttpRequest) -> bool:
        return self.has_view_permission(request)

    def has_view_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return bool(request.user.is_active and request.user.is_staff)

    def has_add_permission(self, request: HttpRequest) -> bool:
        return self._may(request, "add")

    def has_change_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, "change")

    def has_delete_permission(self, request: HttpRequest, obj: Any = None) -> bool:
        return self._may(request, "delete")

    def _may(self, request: HttpRequest, what: str) -> bool:
        permission = get_permission_codename(what, self.opts)
        return has_permission(request.user, f"{self.opts.app_label}.{permission}")
