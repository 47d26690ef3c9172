"""Fields and serializers that document answers; nothing is read or written by them.

Each field says what it is and in which unit. Names are those of the JSON.
"""

from __future__ import annotations

from collections.abc import Iterable
from copy import deepcopy
from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from executions.api.reads import Schema

Shape = type[serializers.Serializer[Any]]


def text(says: str, *, null: bool = False) -> serializers.CharField:
    return serializers.CharField(allow_null=null, help_text=says)


def whole(says: str, *, null: bool = False) -> serializers.IntegerField:
    return serializers.IntegerField(allow_null=null, help_text=says)


def flag(says: str) -> serializers.BooleanField:
    return serializers.BooleanField(help_text=says)


def instant(says: str, *, null: bool = False) -> serializers.DateTimeField:
    """ISO 8601, in UTC, with Z."""
    return serializers.DateTimeField(allow_null=null, help_text=says)


def one_of(choices: Iterable[object], says: str) -> serializers.JSONField:
    return shaped({"type": "string", "enum": [str(choice) for choice in choices]}, says)


def shaped(schema: Schema, says: str) -> serializers.JSONField:
    """A field of any JSON schema."""
    kind: type[serializers.JSONField] = type("Shaped", (serializers.JSONField,), {})
    return extend_schema_field(dict(schema))(kind)(help_text=says)


def page_of(item: Shape, name: str) -> Shape:
    """A page of a list of these; ``name``: of the component."""
    fields = {
        "results": item(many=True, help_text="What is on this page."),
        "next": serializers.URLField(
            allow_null=True, help_text="The address of the next page; null where this is the last."
        ),
    }
    return type(name, (serializers.Serializer,), {"__doc__": "A page of a list.", **fields})


def sparse(item: Shape, name: str) -> Shape:
    """The same, of which the parameter ``fields`` names what is there."""
    fields = deepcopy(item().get_fields())
    for field in fields.values():
        vars(field)["_kwargs"]["required"] = False  # of which a serializer's copies of it are made
    doc = f"{item.__doc__} With `fields`, only what that names."
    return type(name, (serializers.Serializer,), {"__doc__": doc, **fields})
