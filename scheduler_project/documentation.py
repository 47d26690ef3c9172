"""The schema of REST and the two pages that show it. They need no user, no database and no other host."""

from __future__ import annotations

import json
from functools import cache
from typing import Any

from csp.decorators import csp_update
from django.http import HttpResponse
from django.utils.decorators import method_decorator
from django.views.generic import TemplateView
from drf_spectacular.generators import SchemaGenerator
from rest_framework.request import Request

from executions.api.base import RestView
from executions.api.documenting import Answer, documented

MEDIA_TYPE = "application/vnd.oai.openapi+json"


class SchemaView(RestView):
    authentication_classes = []
    permission_classes = []

    @documented(
        "The schema of this API",
        answers={200: Answer({"type": "object"}, "OpenAPI 3.1.", media_types=(MEDIA_TYPE,))},
    )
    def get(self, request: Request) -> HttpResponse:
        """What this document is: every address, parameter, field and error. No user is needed."""
        return HttpResponse(schema_text(), content_type=MEDIA_TYPE, headers={"Cache-Control": "max-age=300"})


@cache
def schema_text() -> str:
    """Addresses do not change while a process lives."""
    return json.dumps(schema(), ensure_ascii=False)


def schema() -> dict[str, Any]:
    """The schema, made anew."""
    generator = SchemaGenerator()  # type: ignore[no-untyped-call]
    made: dict[str, Any] = generator.get_schema(request=None, public=True)  # type: ignore[no-untyped-call]
    return made


class SwaggerPage(TemplateView):
    """To read and to try."""

    template_name = "swagger.html"


# Redoc searches in a worker that it makes of a blob, and writes its styles itself.
@method_decorator(csp_update({"style-src": ["'unsafe-inline'"], "worker-src": ["blob:"]}), name="dispatch")
class RedocPage(TemplateView):
    """To read."""

    template_name = "redoc.html"
