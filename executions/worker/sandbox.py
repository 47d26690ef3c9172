"""The sandbox that templates of runs are rendered in: no way out, and bounded in time and memory (pure).

Jinja2's immutable sandbox keeps a template from the program around it; it does not keep it from
filling all memory or running for ever. Three bounds do, all counted while a template renders:

1. Steps: each turn of a loop, item of an iterable and call of a function is one of MAX_STEPS.
2. Size: what an operator, a filter or a concatenation makes holds at most MAX_TEXT characters
   (or items). What grows by more than a step at a time is measured before it is made.
3. The operators and methods that make much of little (``*`` of texts, padding, formats) are gone.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from contextvars import ContextVar
from functools import wraps
from typing import Any

from jinja2 import StrictUndefined, nodes
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.visitor import NodeTransformer

from scheduler_project.kernel.errors import PermanentError

MAX_TEXT = 1_000_000
MAX_STEPS = 100_000
_GROWING = {
    "format", "format_map", "ljust", "rjust", "center", "zfill", "expandtabs", "replace", "translate", "join",
    "to_bytes",
}  # fmt: skip
_DROPPED = ("batch", "center", "format", "indent", "pprint", "slice", "sum", "urlize", "wordwrap", "xmlattr")
_steps: ContextVar[int] = ContextVar("steps", default=0)


class TemplateRefused(PermanentError):
    """A template cannot be rendered."""


def _step(count: int = 1) -> None:
    taken = _steps.get() + count
    if taken > MAX_STEPS:
        raise TemplateRefused(f"more than {MAX_STEPS} steps; a template is no program")
    _steps.set(taken)


def _fits(size: int) -> None:
    if size > MAX_TEXT:
        raise TemplateRefused(f"a value of {size} characters or items; at most {MAX_TEXT} are allowed")


def _size(value: Any) -> int:
    return len(value) if isinstance(value, Sized) else 0


def _bounded_concat(pieces: Iterable[str]) -> str:
    found, total = [], 0
    for piece in pieces:
        total += len(piece)
        _fits(total)
        found.append(piece)
    return "".join(found)


def _counted(items: Any) -> Iterator[Any]:
    for item in items:
        _step()
        yield item


def _tilde(items: list[Any]) -> str:
    return _bounded_concat(str(item) for item in items)


def _join(value: Iterable[Any], d: str = "", attribute: str | None = None) -> str:
    texts: list[str] = []
    total = 0
    for item in _counted(value):
        text = str(item if attribute is None else item[attribute])
        total += len(text) + len(d)
        _fits(total)
        texts.append(text)
    return d.join(texts)


def _replace(value: Any, old: str, new: str, count: int = -1) -> str:
    text = str(value)
    found = text.count(old) if count < 0 else min(count, text.count(old))
    _fits(len(text) + found * max(0, len(new) - len(old)))
    return text.replace(old, new, count)


def _measured(filter_: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(filter_)  # keeps how Jinja2 has marked what the filter wants as its first argument
    def call(*args: Any, **kwargs: Any) -> Any:
        _step()
        made = filter_(*args, **kwargs)
        if isinstance(made, Iterator):
            return _counted(made)
        _fits(_size(made))
        return made

    return call


class _Bounds(NodeTransformer):
    """Puts what Jinja2 compiles without a hook, loops and ``~``, through the counted functions."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _filter(node.iter, "_counted")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _filter(nodes.List(node.nodes, lineno=node.lineno), "_tilde")


def _filter(node: Any, name: str) -> nodes.Filter:
    return nodes.Filter(node, name, [], [], None, None, lineno=node.lineno)


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "*", "**", "%"})
    concat = staticmethod(_bounded_concat)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return attr not in _GROWING and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> None:
        """No safe form of ``str.format``: its padding cannot be measured before it is made."""

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        if operator == "+":
            _fits(_size(left) + _size(right))
        elif not all(isinstance(side, int | float) and abs(side) < 1e9 for side in (left, right)):
            raise TemplateRefused(f"{operator!r} works on numbers below a billion only")
        elif operator == "**" and abs(right) > 64:
            raise TemplateRefused("an exponent above 64 is too large")
        return super().call_binop(context, operator, left, right)

    def call(self, *args: Any, **kwargs: Any) -> Any:
        _step(5)  # what it costs beside a turn of a loop
        return super().call(*args, **kwargs)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Bounds().visit(super()._parse(source, name, filename))
        return tree


def _environment() -> _Environment:
    made = _Environment(
        undefined=StrictUndefined, autoescape=False, keep_trailing_newline=True, cache_size=0, optimized=False
    )  # optimised, it would work out constants while it compiles
    for name in _DROPPED:
        del made.filters[name]
    made.filters.update(quote=lambda value: shlex.quote(str(value)), join=_join, replace=_replace)
    for name, filter_ in made.filters.items():
        made.filters[name] = _measured(filter_)
    made.filters.update(_counted=_counted, _tilde=_tilde)
    for name in ("lipsum", "cycler", "joiner"):
        del made.globals[name]
    return made


ENVIRONMENT = _environment()


def render_text(template: str, names: Mapping[str, Any]) -> str:
    """``template`` with ``names``. TemplateRefused beyond the bounds; else whatever the template raises."""
    token = _steps.set(0)
    try:
        return _bounded_concat(ENVIRONMENT.from_string(template).generate(names))
    finally:
        _steps.reset(token)
