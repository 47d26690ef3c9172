"""The Content-Security-Policy of each page (docs/adr/0023): scripts come from here, and as files."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from csp.middleware import CSPMiddleware, PolicyParts
from django.http import HttpRequest, HttpResponseBase

# What a page needs beyond CONTENT_SECURITY_POLICY, by the beginning of its address.
BEYOND: Mapping[str, Mapping[str, list[str]]] = {
    "/admin/": {"script-src": ["'unsafe-eval'"]},  # Alpine.js compiles the expressions in unfold's templates
    "/api/v1/redoc": {"worker-src": ["blob:"]},  # its search index is built in a worker made from a text
}


class ContentPolicy(CSPMiddleware):
    def get_policy_parts(
        self, request: HttpRequest, response: HttpResponseBase, report_only: bool = False
    ) -> PolicyParts:
        parts: PolicyParts = super().get_policy_parts(request, response, report_only)
        for beginning, more in BEYOND.items():
            if request.path_info.startswith(beginning):
                parts.update = _joined(parts.update or {}, more)
        return parts


def _joined(said: Mapping[str, Any], more: Mapping[str, list[str]]) -> dict[str, Any]:
    return {**said, **{name: [*said.get(name, []), *sources] for name, sources in more.items()}}
