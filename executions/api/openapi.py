"""What the schema is made of beside what each endpoint says (documenting.py): drf-spectacular, told of us."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, cast

from django.urls import resolve
from drf_spectacular.openapi import AutoSchema

from executions.api.problem_schemas import reason_of
from executions.api.reads import SHAPES, schema_of

if TYPE_CHECKING:
    from executions.api.base import RestView

SECURITY_SCHEMES: dict[str, Any] = {
    "token": {
        "type": "http",
        "scheme": "bearer",
        "description": "`Authorization: Bearer …` or `Authorization: Token …`.",
    },
    "session": {
        "type": "apiKey",
        "in": "cookie",
        "name": "sessionid",
        "description": "The session of a login at `/admin/`; with it, changes need `X-CSRFToken`.",
    },
}


class RestSchema(AutoSchema):
    """The schema of a RestView; a method without ``@documented`` is not in it, and a test fails for that."""

    def is_excluded(self) -> bool:
        return not getattr(getattr(self.view, self.method.lower()), "documented", False)

    def get_auth(self) -> list[dict[str, Any]]:
        needs_nobody = self.view.authentication_classes == []
        return [] if needs_nobody else [{name: []} for name in SECURITY_SCHEMES]

    def get_description(self) -> str:  # type: ignore[override]
        """The docstring of the method, not of its class."""
        text = getattr(self.view, self.method.lower()).__doc__ or ""
        return " ".join(line.strip() for line in text.splitlines()).strip()

    def get_operation_id(self) -> str:
        """The name of the address, and the method: ``job-list-get`` is ``jobListGet``."""
        words = f"{self._url_name()}-{self.method.lower()}".split("-")
        return words[0] + "".join(word.title() for word in words[1:])

    def get_tags(self) -> list[str]:
        return [self.path.removeprefix("/api/v1/").partition("/")[0]]

    def _url_name(self) -> str:
        return resolve(self.path.replace("{", "").replace("}", "")).url_name or ""

    def _resolve_path_parameters(self, variables: list[str]) -> list[dict[str, Any]]:
        return [self._path_parameter(name) for name in variables]

    def _path_parameter(self, name: str) -> dict[str, Any]:
        schema = schema_of(cast("RestView", self.view).in_path[name])
        description = schema.pop("description")
        return {"name": name, "in": "path", "required": True, "schema": schema, "description": description}

    def _get_request_body(self, direction: str = "request") -> dict[str, Any] | None:
        content: dict[str, Any] | None = super()._get_request_body(direction)  # type: ignore[no-untyped-call]
        if content is None:
            return None
        name = content["content"]["application/json"]["schema"]["$ref"].rpartition("/")[2]
        return {**content, "required": True} if SHAPES[name].get("required") else content

    def _get_response_bodies(self, direction: Literal["request", "response"] = "response") -> dict[str, Any]:
        answers: dict[str, Any] = super()._get_response_bodies(direction)
        if "{" in self.path and "404" not in answers:
            answers["404"] = {**answers["401"], "description": reason_of(404)}
            answers["404"].pop("headers", None)
        return answers


def complete(result: dict[str, Any], **_: Any) -> dict[str, Any]:
    """A postprocessing hook: named shapes, ways to authenticate, and that objects hold nothing else."""
    components = result.setdefault("components", {})
    shapes = components.setdefault("schemas", {})
    for shape in shapes.values():
        if "properties" in shape:
            shape.setdefault("additionalProperties", False)
    shapes |= SHAPES
    components["securitySchemes"] = SECURITY_SCHEMES
    return result
