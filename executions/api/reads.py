"""Readers of one value that also say, as JSON schema, what they read: the schema is made of them.

    whole_number(1, 100).saying("How many runs a page holds.", default=50)

is a reader (``reader(value, name)``, InvalidValue where the value breaks its rule) and a parameter or a
field of the schema at once, so what is documented is what is read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
Schema = Mapping[str, Any]
"""JSON schema (2020-12, which OpenAPI 3.1 has)."""


@dataclass(frozen=True, slots=True)
class Reads(Generic[Value]):
    read: Callable[[Any, str], Value]
    schema: Schema = field(default_factory=dict)
    needed: bool = False  # whether a parameter must be there; of fields, their Body says it

    def __call__(self, value: Any, name: str) -> Value:
        return self.read(value, name)

    def saying(self, description: str, **more: Any) -> Reads[Value]:
        """The same reader of a value of which ``description`` tells what it is, and in which unit.

        ``more``: other members of its schema, such as ``default`` and ``examples``.
        """
        return replace(self, schema={**self.schema, "description": description, **more})


def needed(reader: Reads[Value]) -> Reads[Value]:
    """The same, of a parameter that must be there."""
    return replace(reader, needed=True)


def is_needed(reader: Callable[..., Any]) -> bool:
    return isinstance(reader, Reads) and reader.needed


def reads(**schema: Any) -> Callable[[Callable[[Any, str], Value]], Reads[Value]]:
    """Decorates a reader with what it reads."""
    return lambda read: Reads(read, schema)


SHAPES: dict[str, dict[str, Any]] = {}
"""Schemas with a name of their own: components of the schema (openapi.py)."""


def named(name: str, schema: Schema) -> dict[str, Any]:
    """A reference to ``schema``, which is known by ``name`` from now on."""
    if SHAPES.setdefault(name, dict(schema)) != schema:
        raise ValueError(f"There are two shapes {name!r}.")
    return {"$ref": f"#/components/schemas/{name}"}


def nullable(schema: Schema) -> dict[str, Any]:
    """The same, and null."""
    if isinstance(schema.get("type"), str) and "enum" not in schema:
        return {**schema, "type": [schema["type"], "null"]}
    return {"anyOf": [dict(schema), {"type": "null"}]}


def or_null(reader: Reads[Value]) -> Reads[Value | None]:
    """The same, and null, which is read as None."""
    return Reads(lambda value, name: None if value is None else reader(value, name), nullable(reader.schema))


def schema_of(reader: Callable[..., Any]) -> dict[str, Any]:
    """What ``reader`` reads, as far as it says so."""
    return dict(reader.schema) if isinstance(reader, Reads) else {}
