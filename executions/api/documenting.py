"""How an endpoint documents itself, and is read by what it says.

    class PoolDetail(RestView):
        in_path = {"name": POOL_NAME}

        @documented("Change a pool", body=POOL_CHANGES, answers={200: PoolShown}, errors=(409,))
        def patch(self, request, name):
            ...self.given...

``@documented`` makes the operation of the schema and reads the request before the method is called:
``self.query`` are the query parameters by ``query``, ``self.given`` the body by ``body``. So what is not in
the schema is refused, and what is in it has its reader. The method's docstring is the description.

- ``query``: parameter names to readers (parameters.py) that say what they read (``Reads.saying``); those that
  are ``needed`` must be there.
- ``body``: a ``Body``; without one the body must be empty.
- ``answers``: statuses to a serializer that documents the answer (each field with ``help_text``), an
  ``Answer`` where there is more to say (headers, another media type), or None for no content.
- ``errors``: the statuses of errors beside those that every operation may answer with.
- ``takes``: request headers, names to ``Reads``; they are documented here, and read where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import wraps
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from drf_spectacular.utils import OpenApiParameter, OpenApiResponse, extend_schema
from rest_framework import serializers
from rest_framework.request import Request

from executions.api.bodies import read_body
from executions.api.parameters import Reader, read_query
from executions.api.problem_schemas import CONTENT_TYPE, reason_of, shape_of
from executions.api.reads import Reads, Schema, is_needed, named, schema_of
from scheduler_project.kernel.errors import InvalidFields, complaints

if TYPE_CHECKING:
    from executions.api.base import RestView

Method = TypeVar("Method", bound=Callable[..., Any])
ANY_TIME = (400, 401, 403, 429, 500, 503)
WITH_BODY = (413, 415)
OF_UNSAFE = {"post", "patch", "put"}


Serializer = type[serializers.BaseSerializer[Any]]


@dataclass(frozen=True, slots=True)
class Answer:
    """``shape``: a serializer, or JSON schema; ``headers``: names to descriptions."""

    shape: Serializer | Schema | None
    description: str = ""
    headers: Mapping[str, str] = field(default_factory=dict)
    media_types: Sequence[str] = ("application/json",)


@dataclass(frozen=True, slots=True)
class Body:
    """What a request carries: ``name`` in the schema, its fields, and which of them must be there.

    ``read``: where ``fields`` only document, and another reader reads the whole (a job's definition).
    ``rules``: what JSON schema says of the whole beside that.
    """

    name: str
    description: str
    fields: Mapping[str, Callable[[Any, str], Any]]
    required: Sequence[str] = ()
    read: Callable[[Mapping[str, Any]], Any] | None = None
    rules: Mapping[str, Any] = field(default_factory=dict)

    def __call__(self, given: Mapping[str, Any]) -> Any:
        if self.read is not None:
            return self.read(given)
        return read_body(given, self.fields, required=self.required)

    @property
    def schema(self) -> dict[str, Any]:
        required = {"required": list(self.required)} if self.required else {}
        return {
            "type": "object",
            "description": self.description,
            "properties": {name: schema_of(reader) for name, reader in self.fields.items()},
            **required,
            "additionalProperties": False,
            **self.rules,
        }


def documented(
    summary: str,
    *,
    answers: Mapping[int, Serializer | Answer | None],
    query: Mapping[str, Reader] | None = None,
    body: Body | None = None,
    errors: Iterable[int] = (),
    takes: Mapping[str, Reads[Any]] | None = None,
) -> Callable[[Method], Method]:
    """See this module's docstring."""
    known = query or {}
    taken = {"application/json": named(body.name, body.schema)} if body else None

    full = {status: _answer(answer) for status, answer in answers.items()}

    def decorate(method: Method) -> Method:
        unsafe = method.__name__ in OF_UNSAFE
        statuses = {*ANY_TIME, *(WITH_BODY if unsafe else ()), *errors}
        schema = extend_schema(
            summary=summary,
            parameters=[
                *_parameters(known, "query"),
                *_parameters(takes or {}, "header"),
                *_answered_headers(full),
            ],
            request=taken,
            responses={**_answers(full), **_errors(statuses)},
        )

        @wraps(method)
        def handler(view: RestView, request: Request, *args: Any, **kwargs: Any) -> Any:
            view.query = read_query(request.query_params, known)
            if unsafe:
                view.given = body(view.body) if body else require_empty(view.body)
            return method(view, request, *args, **kwargs)

        handler.documented = True  # type: ignore[attr-defined]
        return schema(handler)  # type: ignore[return-value]

    return decorate


def require_empty(body: Mapping[str, Any]) -> dict[str, Any]:
    """For calls that take nothing: a field that would be ignored is refused."""
    if body:
        raise InvalidFields(complaints(body, lambda _: "This call takes no fields."))
    return {}


def _parameters(readers: Mapping[str, Reader], place: Literal["query", "header"]) -> list[OpenApiParameter]:
    return [_parameter(name, reader, place) for name, reader in readers.items()]


def _parameter(name: str, reader: Reader, place: Literal["query", "header"]) -> OpenApiParameter:
    schema = schema_of(reader)
    description = schema.pop("description", "")
    return OpenApiParameter(name, schema, place, required=is_needed(reader), description=description)


def _answer(answer: Serializer | Answer | None) -> Answer:
    if isinstance(answer, Answer):
        return answer
    return Answer(answer, (answer.__doc__ or "").strip() if answer else "Done.")


def _answered_headers(answers: Mapping[int, Answer]) -> list[OpenApiParameter]:
    own = [
        _answered_header(name, text, [status])
        for status, answer in answers.items()
        for name, text in answer.headers.items()
    ]
    return [
        _answered_header("Retry-After", "After how many seconds to try again.", [429, 503]),
        _answered_header("WWW-Authenticate", "The scheme of authentication.", [401]),
        *own,
    ]


def _answered_header(name: str, text: str, statuses: list[int]) -> OpenApiParameter:
    return OpenApiParameter(name, str, OpenApiParameter.HEADER, response=statuses, description=text)


def _answers(answers: Mapping[int, Answer]) -> dict[Any, OpenApiResponse]:
    return {
        (status, *answer.media_types): OpenApiResponse(answer.shape, description=answer.description)
        for status, answer in answers.items()
    }


def _errors(statuses: Iterable[int]) -> dict[Any, OpenApiResponse]:
    return {
        (status, CONTENT_TYPE): OpenApiResponse(shape_of(status), description=reason_of(status))
        for status in sorted(statuses)
    }
