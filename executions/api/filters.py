"""django-filter's FilterSets as query parameters: read strictly, and in the schema.

    QUERY = {**filters_of(JobFilter), "limit": parameters.limit}
    jobs = narrowed(JobFilter, jobs, self.query)

Each filter needs a ``help_text``. What django-filter would leave out of account (an unknown choice, an empty
text, an unknown parameter) is a 400 here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

import django_filters
from django.core.exceptions import ValidationError
from django.db.models import Model, QuerySet

from executions.api.parameters import text
from executions.api.reads import Reads
from scheduler_project.kernel.errors import InvalidValue
from scheduler_project.kernel.texts import shown

Rows = TypeVar("Rows", bound=Model)


def filters_of(filters: type[django_filters.FilterSet]) -> dict[str, Reads[Any]]:
    """The parameters that these filters are."""
    return {name: _reader(found) for name, found in filters.base_filters.items()}


def narrowed(
    filters: type[django_filters.FilterSet], rows: QuerySet[Rows], query: Mapping[str, Any]
) -> QuerySet[Rows]:
    """The rows that pass the filters that ``query``, read by ``filters_of``, names."""
    chosen = filters({}, queryset=rows)
    for name, found in chosen.filters.items():
        if name in query:
            rows = found.filter(rows, query[name])
    return rows


def _reader(found: django_filters.Filter) -> Reads[Any]:
    field = found.field
    choices = [str(value) for value, _ in getattr(field, "choices", ()) if value not in ("", None)]

    def read(value: str, name: str) -> Any:
        text(value, name)
        if choices and value not in choices:
            raise InvalidValue(f"{shown(value)} is not one of {', '.join(choices)}.", field=name)
        try:
            return field.clean(value)
        except ValidationError as error:
            raise InvalidValue(f"{shown(value)}: {' '.join(error.messages)}", field=name) from error

    schema = {"type": "string", "enum": choices} if choices else dict(text.schema)
    return Reads(read, schema).saying(str(found.extra["help_text"]))


def some_of(names: Iterable[str]) -> Reads[frozenset[str]]:
    """The parameter ``fields``: which of these an answer is to have, with commas between them."""
    known = list(names)

    def read(value: str, name: str) -> frozenset[str]:
        chosen = value.split(",")
        if unknown := [field for field in chosen if field not in known]:
            raise InvalidValue(f"{shown(unknown[0])} is not one of {', '.join(known)}.", field=name)
        return frozenset(chosen)

    one = "|".join(known)
    return Reads(read, {"type": "string", "pattern": f"^({one})(,({one}))*$"}).saying(
        "Only these fields, with commas between them; default: all.", examples=[",".join(known[:2])]
    )


def only(results: list[dict[str, Any]], fields: frozenset[str] | None) -> list[dict[str, Any]]:
    """The results with these fields only; None: with all."""
    if fields is None:
        return results
    return [{name: value for name, value in result.items() if name in fields} for result in results]
