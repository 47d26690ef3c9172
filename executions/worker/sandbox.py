"""The sandbox that templates of runs are rendered in: no way out, and bounded in time and memory (pure).

Jinja2's immutable sandbox keeps a template from the program around it; it does not keep it from
filling all memory or running for ever. Four bounds do, all counted while the templates of a run render:

1. Steps: each turn of a loop, item of an iterable and call of a function is one of MAX_STEPS, and
   so are every CHARS_A_STEP characters and ITEMS_A_STEP items that an operator, a comparison, a
   filter, a call or an output reads or makes; a token of the source is STEPS_A_TOKEN, a template
   STEPS_A_TEMPLATE. So time is bounded, and all that is ever made too: MAX_STEPS * CHARS_A_STEP
   characters.
2. Size: no value holds more than MAX_TEXT characters and MAX_ITEMS items, at all depths; what is
   in it twice counts twice. What grows by more than a factor is measured before it is made.
3. The operators, filters and methods that make much of little (``*`` of texts, padding, formats,
   rounding to a million places) are gone, and so is HTML.
4. Time: MAX_CPU_S of the processor, in case a step should cost more than it ought to. Not of the wall's
   clock: a worker that was suspended has not rendered meanwhile.

What counts is called by the compiled template as a Hook of its environment, which has no name that
a template could say: no filter, no test, no global.

StrictUndefined fails where a name that is not there is shown; here it fails already where it
becomes a part of a list, a tuple, a dict or a namespace, whose texts would say ``Undefined``.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Collection, ItemsView, Iterable, Iterator, KeysView, Mapping, ValuesView
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import wraps
from typing import Any

from jinja2 import StrictUndefined, Template, Undefined, nodes
from jinja2.filters import do_round
from jinja2.lexer import TokenStream
from jinja2.sandbox import ImmutableSandboxedEnvironment
from jinja2.utils import Namespace, htmlsafe_json_dumps
from jinja2.visitor import NodeTransformer

from scheduler_project.kernel.clock import thread_cpu_s
from scheduler_project.kernel.errors import PermanentError

MAX_TEXT = 1_000_000
MAX_ITEMS = 50_000
MAX_STEPS = 100_000
CHARS_A_STEP = 200
ITEMS_A_STEP = 1
STEPS_A_TOKEN = 10
STEPS_A_TEMPLATE = 100
MAX_CPU_S = 2.0
STEPS_BETWEEN_LOOKS = 256  # at the clock, which costs as much as a step
MAX_NUMBER = 10**600
_GROWING = {
    "format", "format_map", "ljust", "rjust", "center", "zfill", "expandtabs", "replace", "translate", "join",
    "to_bytes", "from_bytes", "encode",
}  # fmt: skip
_DROPPED = (
    "batch", "center", "e", "escape", "forceescape", "format", "indent", "pprint", "safe", "slice",
    "striptags", "sum", "urlize", "wordwrap", "xmlattr",
)  # fmt: skip
_SPREADING = {"list", "sort"}
_FLAT = (list, tuple, set, frozenset, KeysView, ValuesView, ItemsView)


class TemplateRefused(PermanentError):
    """A template cannot be rendered."""


@dataclass(slots=True)
class _Budget:
    """What all templates of a run, or of a definition, have taken together."""

    ends_at_s: float = field(default_factory=lambda: thread_cpu_s() + MAX_CPU_S)
    steps: int = 0
    look_at: int = STEPS_BETWEEN_LOOKS

    def take(self, count: int) -> None:
        self.steps += max(0, count)
        if self.steps > MAX_STEPS:
            raise TemplateRefused(f"more than {MAX_STEPS} steps; a template is no program")
        if self.steps >= self.look_at:
            self.look_at = self.steps + STEPS_BETWEEN_LOOKS
            if thread_cpu_s() > self.ends_at_s:
                raise TemplateRefused(f"more than {MAX_CPU_S:g} s of computing; a template is no program")


_budget: ContextVar[_Budget | None] = ContextVar("budget", default=None)


def _step(count: int = 1) -> None:
    budget = _budget.get()
    assert budget is not None  # noqa: S101 -- nothing counts outside counted_steps
    budget.take(count)


def _fits(size: int, most: int = MAX_TEXT) -> None:
    if size > most:
        kind = "characters" if most == MAX_TEXT else "items"
        raise TemplateRefused(f"a value of {size} {kind}; at most {most} are allowed")


def _weigh(*values: Any) -> None:
    """Count the characters and items of ``values`` as steps; refuse too much, and undefined parts of them."""
    items, chars = len(values), 0
    waiting = [
        value for value in values if not isinstance(value, Undefined)
    ]  # which ``default`` may be given
    while waiting:
        item = waiting.pop()
        if isinstance(item, str | bytes):
            chars += len(item)
        elif isinstance(item, range):
            items += len(item)
        elif isinstance(item, Undefined):
            item._fail_with_undefined_error()
        else:
            parts = _parts(item)
            items += len(parts)
            waiting += parts
        _fits(chars)
        _fits(items, MAX_ITEMS)
    _step(items // ITEMS_A_STEP + chars // CHARS_A_STEP)


def _weighed(value: Any) -> Any:
    _weigh(value)
    return value


def _parts(value: Any) -> Collection[Any]:
    if isinstance(value, _FLAT):
        return value
    if isinstance(value, Namespace):
        value = getattr(value, "_Namespace__attrs")  # noqa: B009 -- its text shows them all
    return (*value.keys(), *value.values()) if isinstance(value, dict) else ()


def _spread(value: Any) -> Any:
    """``value``, whose characters are about to become items; each takes as much memory as a short text."""
    if isinstance(value, str | bytes):
        _fits(len(value), MAX_ITEMS)
    return value


def _bounded_concat(pieces: Iterable[str]) -> str:
    found, total = [], 0
    for piece in pieces:
        total += len(piece)
        _fits(total)
        found.append(piece)
    _step(total // CHARS_A_STEP)
    return "".join(found)


def _counted(items: Any, steps: int = 1) -> Iterator[Any]:
    for item in items:
        _step(steps)
        yield item


def _tilde(items: list[Any]) -> str:
    return _bounded_concat(str(_weighed(item)) for item in items)


def _join(value: Iterable[Any], d: str = "", attribute: str | None = None) -> str:
    texts: list[str] = []
    total = 0
    for item in _counted(value):
        text = str(_weighed(item if attribute is None else item[attribute]))
        total += len(text) + len(d)
        _fits(total)
        texts.append(text)
    return d.join(texts)


def _replace(value: Any, old: str, new: str, count: int = -1) -> str:
    text = str(value)
    found = text.count(old) if count < 0 else min(count, text.count(old))
    _fits(len(text) + found * max(0, len(new) - len(old)))
    return text.replace(old, new, count)


def _round(value: float, precision: int = 0, method: str = "common") -> float:
    if not -20 <= precision <= 20:
        raise TemplateRefused(f"round to {precision} places: -20 to 20 are allowed")
    return do_round(value, precision, method)  # type: ignore[arg-type]


def _tojson(value: Any) -> str:
    return str(htmlsafe_json_dumps(value))


def _measured(function: Callable[..., Any], *, spreads: bool = False) -> Callable[..., Any]:
    """A filter or test that counts what it reads and makes. ``spreads``: it makes items of a text at once."""

    @wraps(function)  # keeps how Jinja2 has marked what it wants as its first argument
    def call(*args: Any, **kwargs: Any) -> Any:
        _step()
        _weigh(*args, *kwargs, *kwargs.values())
        if spreads:
            for value in args:
                _spread(value)
        made = function(*args, **kwargs)
        return _counted(made) if isinstance(made, Iterator) else _weighed(made)

    return call


def _all_measured(functions: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _measured(function, spreads=name in _SPREADING) for name, function in functions.items()}


class _Bounds(NodeTransformer):
    """Puts what Jinja2 compiles without a hook through the functions that count."""

    def visit_For(self, node: nodes.For) -> nodes.Node:
        self.generic_visit(node)
        node.iter = _hooked(node.iter, "counted")
        return node

    def visit_Call(self, node: nodes.Call) -> nodes.Node:
        self.generic_visit(node)
        if node.dyn_args is not None:
            node.dyn_args = _hooked(node.dyn_args, "spread")
        return node

    def visit_Concat(self, node: nodes.Concat) -> nodes.Node:
        self.generic_visit(node)
        return _hooked(nodes.List(node.nodes, lineno=node.lineno), "tilde")

    def visit_Compare(self, node: nodes.Compare) -> nodes.Node:
        self.generic_visit(node)
        node.expr = _hooked(node.expr, "weighed")
        for operand in node.ops:
            operand.expr = _hooked(operand.expr, "weighed")
        return node

    def visit_Getitem(self, node: nodes.Getitem) -> nodes.Node:
        self.generic_visit(node)
        if isinstance(node.arg, nodes.Slice):
            node.node = _hooked(node.node, "weighed")
        return node

    def visit_List(self, node: nodes.List | nodes.Dict) -> nodes.Node:
        self.generic_visit(node)
        return _hooked(node, "weighed")

    visit_Dict = visit_List

    def visit_Tuple(self, node: nodes.Tuple) -> nodes.Node:
        self.generic_visit(node)
        return _hooked(node, "weighed") if node.ctx == "load" else node


def _hooked(node: Any, name: str) -> nodes.Call:
    hook = nodes.EnvironmentAttribute(f"{name}_hook", lineno=node.lineno)
    return nodes.Call(hook, [node], [], None, None, lineno=node.lineno)


@dataclass(frozen=True, slots=True)
class _Hook:
    """A function that compiled templates call and that no template can."""

    function: Callable[[Any], Any]


class _Environment(ImmutableSandboxedEnvironment):
    intercepted_binops = frozenset({"+", "-", "*", "/", "//", "**", "%"})
    concat = staticmethod(_bounded_concat)
    counted_hook = _Hook(_counted)
    spread_hook = _Hook(_spread)
    tilde_hook = _Hook(_tilde)
    weighed_hook = _Hook(_weighed)

    def is_safe_attribute(self, obj: Any, attr: str, value: Any) -> bool:
        return attr not in _GROWING and super().is_safe_attribute(obj, attr, value)

    def wrap_str_format(self, value: Any) -> None:
        """No safe form of ``str.format``: its padding cannot be measured before it is made."""

    def call_binop(self, context: Any, operator: str, left: Any, right: Any) -> Any:
        _step()
        _weigh(left, right)
        sides = (left, right)
        if operator in {"*", "**", "%"} and not all(_is_number(side, 1e9) for side in sides):
            raise TemplateRefused(f"{operator!r} works on numbers below a billion only")
        if operator == "**" and abs(right) > 64:
            raise TemplateRefused("an exponent above 64 is too large")
        if any(isinstance(side, int) and not _is_number(side, MAX_NUMBER) for side in sides):
            raise TemplateRefused(f"a number too large for {operator!r}")
        return _weighed(super().call_binop(context, operator, left, right))

    def call(self, __context: Any, __function: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(__function, _Hook):
            return __function.function(*args)
        _step(5)  # what it costs beside a turn of a loop
        _weigh(getattr(__function, "__self__", None), *args, *kwargs, *kwargs.values())
        return _weighed(super().call(__context, __function, *args, **kwargs))

    def _tokenize(
        self, source: str, name: str | None, filename: str | None = None, state: str | None = None
    ) -> TokenStream:
        stream = super()._tokenize(source, name, filename, state)
        return TokenStream(_counted(stream, STEPS_A_TOKEN), stream.name, stream.filename)

    def _parse(self, source: str, name: str | None, filename: str | None) -> nodes.Template:
        tree: nodes.Template = _Bounds().visit(super()._parse(source, name, filename))
        return tree


def _environment() -> _Environment:
    made = _Environment(
        undefined=StrictUndefined,
        autoescape=False,
        keep_trailing_newline=True,
        cache_size=0,
        optimized=False,  # optimised, it would work out constants while it compiles
        finalize=_weighed,
    )
    for name in _DROPPED:
        del made.filters[name]
    made.filters.update(
        quote=lambda value: shlex.quote(str(value)),
        join=_join,
        replace=_replace,
        round=_round,
        tojson=_tojson,
    )
    made.filters.update(_all_measured(made.filters))
    made.tests.update(_all_measured(made.tests))
    for name in ("lipsum", "cycler", "joiner"):
        del made.globals[name]
    return made


ENVIRONMENT = _environment()


def _is_number(value: Any, below: float) -> bool:
    return isinstance(value, int | float) and abs(value) < below


@contextmanager
def counted_steps() -> Iterator[None]:
    """Within it all templates together have one budget: that of what it is within itself, if it is."""
    token = _budget.set(_budget.get() or _Budget())
    try:
        yield
    finally:
        _budget.reset(token)


@counted_steps()
def read_template(text: str) -> Template:
    """``text`` compiled. TemplateRefused beyond the bounds; else whatever Jinja2 raises."""
    _step(STEPS_A_TEMPLATE)
    return ENVIRONMENT.from_string(text)


@counted_steps()
def render_text(text: str, names: Mapping[str, Any]) -> str:
    """``text`` with ``names``. TemplateRefused beyond the bounds; else whatever the template raises."""
    return _bounded_concat(read_template(text).generate(names))
