"""Templates in commands, environments and parameters (pure).

Jinja2 in a sandbox of its own (sandbox.py), with StrictUndefined: a name that is not there is an error,
not an empty text. Available: ``ds`` (the day the run is planned for, YYYY-MM-DD, UTC), ``ts``
(the planned instant, ISO 8601, UTC), ``execution_id``, ``attempt``, ``job``, ``params.<name>``,
and the filter ``quote`` (one safe word for a shell). ``params`` holds the rendered parameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from jinja2 import TemplateError

from executions.runspecs import Spec
from executions.worker.sandbox import TemplateRefused, counted_steps, read_template, render_text
from scheduler_project.kernel.texts import shortened, unsendable

__all__ = ["Rendered", "TemplateRefused", "check_template", "counted_steps", "render"]


@dataclass(frozen=True, slots=True)
class Rendered:
    command: str
    env: dict[str, str]
    parameters: dict[str, Any]


@counted_steps()
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


@counted_steps()
def check_template(text: str) -> None:
    """TemplateRefused where ``text`` is not a template at all: found when a job is saved."""
    try:
        if _is_template(text):
            read_template(text)
    except TemplateRefused:
        raise
    except TemplateError as error:
        raise TemplateRefused(f"{shortened(str(error))} (line {getattr(error, 'lineno', 1)})") from error
    except RecursionError as error:
        raise TemplateRefused("it is nested too deeply, or one expression is too long") from error
    except Exception as error:  # what Python says of the program that Jinja2 makes of it
        raise TemplateRefused(shortened(f"{type(error).__name__}: {error}")) from error


def _is_template(text: str) -> bool:
    return "{" in text


def _render(field: str, value: Any, names: Mapping[str, Any]) -> Any:
    if isinstance(value, Mapping):
        return {key: _render(f"{field}.{key}", item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_render(f"{field}[{number}]", item, names) for number, item in enumerate(value)]
    if not isinstance(value, str):
        return value
    try:
        text = render_text(value, names) if _is_template(value) else value
        if complaint := unsendable(text):
            raise TemplateRefused(complaint)
        return text
    except TemplateRefused as error:
        raise TemplateRefused(f"{field}: {error.message}") from error
    except Exception as error:  # a template is the user's code: whatever it raises is its error
        text = shortened(f"{type(error).__name__}: {error}")
        raise TemplateRefused(f"{field}: {text}") from error
