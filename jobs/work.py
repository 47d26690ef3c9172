"""What is to run, checked as a whole: its type, command, image, variables and secrets (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from executions.worker.commands import command_words
from executions.worker.rendering import TemplateRefused
from jobs.models import WorkType
from scheduler_project.kernel.texts import shortened


def check_together(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """What only several fields together can tell: a command that fits its type, an image where needed.

    Of a job with a task that can be told when the task is known (jobs/tasks.py).
    """
    return {} if values.get("task") else check_work(values)


def check_work(values: Mapping[str, Any]) -> dict[str, list[str]]:
    """The same of all that is to run, the task's defaults included."""
    work_type, command = values["type"], values["command"]
    if work_type == WorkType.CONTAINER and not values.get("image"):
        return {"image": ["A job of type Container needs an image."]}
    if work_type != WorkType.CONTAINER and not command.strip():
        return {"command": ["This field may not be blank."]}
    try:
        if "{" not in command:  # a template's words are known only when it is rendered
            command_words(work_type, command)
    except TemplateRefused as error:
        return {"command": [error.message]}
    secret_env = values.get("container", {}).get("secretEnv", {})
    return {
        f"container.secretEnv.{name}": [f"{shortened(name, 100)} is in env already: in one of them only."]
        for name in sorted(secret_env.keys() & values.get("env", {}).keys())
    }
