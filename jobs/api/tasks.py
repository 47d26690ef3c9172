"""REST of reusable tasks."""

from __future__ import annotations

from http import HTTPStatus
from typing import Any, ClassVar

from django.db import transaction
from rest_framework import serializers
from rest_framework.request import Request
from rest_framework.response import Response

from access.policy import require_permission
from executions.api import parameters
from executions.api.base import RestView, page
from executions.api.conditions import ETAG, MATCHING, require_match, tag_of
from executions.api.documenting import Answer, Body, documented
from executions.api.filters import only, some_of
from executions.api.idempotency import KEYED, once_per_key
from executions.api.presentation import time_text
from executions.api.reads import Reads
from executions.api.shapes import instant, page_of, sparse, text
from jobs.api.fields import JOB_FIELDS
from jobs.models import Task, WorkType
from jobs.tasks import (
    REQUIRED,
    create_task,
    delete_task,
    find_task,
    list_tasks,
    read_task,
    task_body,
    update_task,
)
from scheduler_project.kernel.clock import utcnow


class TaskShown(serializers.Serializer[Any]):
    """A reusable piece of work."""

    id = serializers.UUIDField(help_text="Its id, by which it is addressed.")
    name = text("Its name, by which jobs name it.")
    description = text("For people; may be empty.")
    type = serializers.ChoiceField(choices=WorkType.choices, help_text="How the command is understood.")
    command = text("What jobs run that have no command of their own; a template; may be empty.")
    image = text("The image of jobs that name none; empty: the one of the type.")
    env = serializers.DictField(help_text="Variables of the run by name; a job's of the same name count.")
    parameters = serializers.DictField(help_text="Parameters by name; a job's of the same name count.")
    container = serializers.DictField(help_text="What the container needs; what a job says counts.")
    createdAt = instant("When it was made.")


TaskPage = page_of(sparse(TaskShown, "TaskInList"), "TaskPage")


WORDS = {
    "name": "Its name, by which jobs name it.",
    "description": "For people.",
    "type": "How the command is understood.",
    "command": "What jobs run that have no command of their own; a template.",
    "image": "The image; empty: the one of the type.",
    "env": "Variables of the run, names to texts.",
    "parameters": "Default parameters, names to values.",
    "container": "What the container needs, as of a job.",
}
FIELDS: dict[str, Reads[Any]] = {name: JOB_FIELDS[name].saying(words) for name, words in WORDS.items()}
TASK = Body("Task", "A task to make.", FIELDS, REQUIRED, read_task)
TASK_CHANGES = Body("TaskChanges", "What is to be other of a task; the rest stays.", FIELDS, read=dict)
MADE = Answer(TaskShown, "It is made.", {"Location": "Its address.", **ETAG})
MADE_BEFORE = Answer(TaskShown, "It was made before, with this key.", {"Location": "Its address."})
SHOWN = Answer(TaskShown, "The task as it is now.", ETAG)
QUERY: dict[str, parameters.Reader] = {
    "name": parameters.text.saying("Only the task of this name."),
    "fields": some_of(TaskShown().get_fields()),
    "limit": parameters.limit,
    "cursor": parameters.cursor,
}


class TaskList(RestView):
    @documented("Tasks", query=QUERY, answers={200: TaskPage})
    def get(self, request: Request) -> Response:
        """All may read them."""
        limit = self.query.get("limit", parameters.DEFAULT_LIMIT)
        found = list_tasks(name=self.query.get("name", ""), after=self.query.get("cursor"), limit=limit + 1)
        shown = found[:limit]
        return page(
            request,
            only([task_json(task) for task in shown], self.query.get("fields")),
            more=len(found) > limit,
            cursors=[parameters.cursor_text(task.id) for task in shown],
        )

    @documented("Make a task", body=TASK, takes=KEYED, answers={201: MADE, 200: MADE_BEFORE}, errors=(409,))
    @once_per_key(lambda view: require_permission(view.user, "jobs.add_task"))
    def post(self, request: Request) -> Response:
        """For jobs to name as `task`. 409: there is one of that name, or the key was used for another
        request."""
        task = create_task(self.given, self.user)
        return _shown(task, HTTPStatus.CREATED, Location=f"{request.path}/{task.id}")


class TaskDetail(RestView):
    in_path: ClassVar = {"task_id": parameters.uuid.saying("The task's id.")}

    @documented("One task", answers={200: SHOWN})
    def get(self, request: Request, task_id: str) -> Response:
        """As it is now."""
        return _shown(find_task(parameters.identity(task_id)))

    @documented("Change a task", body=TASK_CHANGES, takes=MATCHING, answers={200: SHOWN}, errors=(409, 412))
    def patch(self, request: Request, task_id: str) -> Response:
        """The fields that are to be others. Runs of its jobs that wait get them at once."""
        with transaction.atomic():
            task = find_task(parameters.identity(task_id), lock=True)
            current = task_body(task)
            require_match(request, current)
            update_task(task, read_task({**current, **self.given}), self.user, utcnow())
        return _shown(find_task(task.id))

    @documented("Delete a task", answers={204: None}, errors=(404, 409))
    def delete(self, request: Request, task_id: str) -> Response:
        """409: jobs use it."""
        delete_task(find_task(parameters.identity(task_id)), self.user)
        return Response(status=HTTPStatus.NO_CONTENT)


def task_json(task: Task) -> dict[str, Any]:
    return {"id": str(task.id), **task_body(task), "createdAt": time_text(task.created_at)}


def _shown(task: Task, status: HTTPStatus = HTTPStatus.OK, **headers: str) -> Response:
    task.refresh_from_db(fields=["created_at"])
    return Response(task_json(task), status=status, headers={"ETag": tag_of(task_body(task)), **headers})
