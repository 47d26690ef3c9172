"""Templates in commands, environments and parameters (pure).

Jinja2 in its immutable sandbox, with StrictUndefined: a name that is not there is an error,
not an empty text. Available: ``ds`` (the day the run is planned for, YYYY-MM-DD, UTC), ``ts``
(the planned instant, ISO 8601, UTC), ``execution_id``, ``attempt``, ``job``, ``params.<name>``,
and the filter ``quote`` (one safe word for a shell). ``params`` holds the rendered parameters.
"""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from jinja2 import StrictUndefined, TemplateError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from executions.runspecs import Spec
from scheduler_project.kernel.errors import PermanentError

MAX_TEXT = 1_000_000
_PADDING = {"format", "format_map", "ljust", "rjust", "center", "zfill", "expandtabs", "replace", "translate"}


class TemplateRefused(PermanentError):
    """A template cannot be rendered."""


class _Environment(ImmutableSandboxedEnvironment):
    """The sandbox, without the operators by which a short template fills all memory."""

    intercepted_binops = frozenset({"*", "**", "%"})

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return attr not in _PADDING and super().is_safe_attribute(obj, attr, value)

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if not all(isinstance(side, int | float) and abs(side) < 1e9 for side in (left, right)):
            raise TemplateRefused(f"{operator!r} works on numbers below a billion only")
        if operator == "**" and abs(right) > 64:
            raise TemplateRefused("an exponent above 64 is too large")
        return super().call_binop(context, operator, left, right)


_ENVIRONMENT = _Environment(undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True)
_ENVIRONMENT.filters["quote"] = lambda value: shlex.quote(str(value))
for _costly in ("center", "indent", "format", "wordwrap"):
    del _ENVIRONMENT.filters[_costly]


@dataclass(frozen=True, slots=True)
class Rendered:
    command: str
    env: dict[str, str]
    parameters: dict[str, Any]


def render(spec: Spec, execution_id: UUID, scheduled_for: datetime, attempt: int) -> Rendered:
    """All templates of ``spec`` for one attempt. TemplateRefused says which field and why."""
    planned = scheduled_for.astimezone(UTC)
    names: dict[str, Any] = {
        "ds": planned.strftime("%Y-%m-%d"),
        "ts": planned.isoformat().replace("+00:00", "Z"),
        "execution_id": str(execution_id),
        "attempt": attempt,
        "job": spec.job_name,
    }
    parameters = {
        name: _render(f"parameters.{name}", value, names) for name, value in spec.parameters.items()
    }
    names["params"] = parameters
    env = {name: str(_render(f"env.{name}", value, names)) for name, value in spec.env.items()}
    return Rendered(str(_render("command", spec.command, names)), env, parameters)


def check_template(text: str) -> None:
    """TemplateRefused where ``text`` is not a template at all: found when a job is saved."""
    try:
        _ENVIRONMENT.parse(text)
    except TemplateError as error:
        raise TemplateRefused(f"{error} (line {getattr(error, 'lineno', 1)})") from error


def _render(field: str, value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _render(f"{field}.{key}", item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_render(f"{field}[{number}]", item, names) for number, item in enumerate(value)]
    if not isinstance(value, str) or "{" not in value:
        return value
    try:
        text = _ENVIRONMENT.from_string(value).render(names)
    except TemplateRefused as error:
        raise TemplateRefused(f"{field}: {error.message}") from error
    except Exception as error:  # a template is the user's code: whatever it raises is its error
        raise TemplateRefused(f"{field}: {type(error).__name__}: {error}") from error
    if len(text) > MAX_TEXT:
        raise TemplateRefused(f"{field}: renders to {len(text)} characters, at most {MAX_TEXT} are allowed")
    return text
