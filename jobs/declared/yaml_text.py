"""YAML as declared jobs are written in it: what JSON can say, and nothing that surprises (pure).

Narrower than the core schema of YAML 1.2: null, true and false as there; numbers are decimal and finite,
without a 0 in front; all else is a text (``no``, ``12:30``, dates, ``012``, ``0o14``, ``0x1F``, ``.inf``).
Refused, with their line: a key that comes twice, a key that is no text, and tags that JSON has no value for.
Anchors and ``<<`` work.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

import yaml
from yaml.constructor import ConstructorError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from scheduler_project.kernel.texts import shown

TAG = "tag:yaml.org,2002:"
_SURROGATE = re.compile("[\ud800-\udfff]")
_PLAIN: dict[str, tuple[re.Pattern[str], str]] = {
    "null": (re.compile(r"(?:~|null|Null|NULL|)\Z"), "~nN"),
    "bool": (re.compile(r"(?:true|True|TRUE|false|False|FALSE)\Z"), "tTfF"),
    "int": (re.compile(r"[-+]?(?:0|[1-9][0-9]{0,4000})\Z"), "-+0123456789"),
    "float": (
        re.compile(r"[-+]?(?:(?:[0-9]+\.[0-9]*|\.[0-9]+)(?:[eE][-+]?[0-9]+)?|[0-9]+[eE][-+]?[0-9]+)\Z"),
        "-+.0123456789",
    ),
    "merge": (re.compile(r"<<\Z"), "<"),
}
"""What a text without quotes may be instead of a text, in this order, and how it may begin."""
_VALUES: dict[str, Callable[[str], Any]] = {
    "null": dict[str, None]().get,
    "bool": lambda text: text.lower() == "true",
    "int": int,
    "float": float,
    "str": str,
}


class CoreLoader(yaml.SafeLoader):
    """Reads one stream; ``construct_document`` may be asked for any node below a document."""

    yaml_implicit_resolvers: dict[str, Any] = {}
    yaml_constructors = {
        tag: read
        for tag, read in yaml.SafeLoader.yaml_constructors.items()
        if tag is None or tag in (TAG + "seq", TAG + "map")
    }

    def nodes(self) -> Iterator[Node]:
        while self.check_node():
            if (node := self.get_node()) is not None:
                yield node

    def flatten_mapping(self, node: MappingNode) -> None:
        """``<<`` becomes what it stands for, each name once: merged ten times over, it would not end."""
        seen: set[str] = set()
        for key, _ in node.value:
            if key.tag == TAG + "merge":
                continue
            name = _name_of(key)
            if name in seen:
                raise ConstructorError(None, None, f"{shown(name)} is there twice", key.start_mark)
            seen.add(name)
        super().flatten_mapping(node)
        node.value = list({_name_of(key): (key, value) for key, value in node.value}.values())

    def construct_value(self, node: ScalarNode) -> Any:
        kind = node.tag.removeprefix(TAG)
        if kind in _PLAIN and not _PLAIN[kind][0].match(node.value):
            raise ConstructorError(None, None, f"{shown(node.value)} is no {kind}", node.start_mark)
        if _SURROGATE.search(node.value):
            text = "a half of a surrogate pair is not a character"
            raise ConstructorError(None, None, text, node.start_mark)
        return _VALUES[kind](node.value)


def _name_of(key: Node) -> str:
    if not isinstance(key, ScalarNode):
        kind = "a list" if isinstance(key, SequenceNode) else "an object"
        raise ConstructorError(None, None, f"{kind} is not a name: names are texts", key.start_mark)
    if key.tag != TAG + "str":
        text = f"{shown(key.value)} is not a text: a name that looks like something else needs quotes"
        raise ConstructorError(None, None, text, key.start_mark)
    return str(key.value)


for _kind, (_pattern, _beginnings) in _PLAIN.items():
    CoreLoader.add_implicit_resolver(TAG + _kind, _pattern, [*_beginnings, ""])
for _kind in _VALUES:
    CoreLoader.add_constructor(TAG + _kind, CoreLoader.construct_value)


class _Dumper(yaml.SafeDumper):
    """Texts of several lines as blocks, so that a difference shows their lines."""


def _represent_text(dumper: yaml.SafeDumper, text: str) -> ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar(TAG + "str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump(value: object) -> str:
    """``value`` as people read it, one field a line, in its own order."""
    return str(
        yaml.dump(
            value, Dumper=_Dumper, sort_keys=False, allow_unicode=True, default_flow_style=False, width=1000
        )
    )
