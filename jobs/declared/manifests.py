"""Reads files of jobs: each YAML document is a job or a list of jobs, in the fields of REST (pure)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from yaml import MarkedYAMLError, YAMLError
from yaml.nodes import MappingNode, Node, ScalarNode, SequenceNode

from jobs.declared.wanted import Place, Problem, Wanted
from jobs.declared.yaml_text import CoreLoader
from jobs.definitions import READERS, read_definition
from scheduler_project.kernel.errors import InvalidFields
from scheduler_project.kernel.texts import shown


def read_manifest(text: str, path: str, owner: str = "") -> tuple[list[Wanted], list[Problem]]:
    """The jobs that ``text`` declares, and all that is wrong with it. ``owner``: of jobs that name none."""
    manifest = _Manifest(path, owner)
    try:
        loader = CoreLoader(text)
        for node in loader.nodes():
            manifest.read_document(loader, node)
    except YAMLError as error:
        manifest.problems.append(_problem_of(error, path))
    except RecursionError:
        manifest.problems.append(Problem(Place(path, 1), "", "It is nested too deep."))
    return manifest.wanted, manifest.problems


class _Manifest:
    """What has been read of one file so far."""

    def __init__(self, path: str, owner: str) -> None:
        self.wanted: list[Wanted] = []
        self.problems: list[Problem] = []
        self._path = path
        self._owner = owner

    def read_document(self, loader: CoreLoader, document: Node) -> None:
        if isinstance(document, ScalarNode) and document.tag.endswith(":null"):
            return
        for node in document.value if isinstance(document, SequenceNode) else [document]:
            if isinstance(node, MappingNode) and (key := _key_of_a_list(node)):
                text = f"This is no job: write the list itself, without {shown(key.value)} above it."
                self.problems.append(Problem(self._place(key), "", text))
            elif isinstance(node, MappingNode):
                self._read_job(loader, node)
            else:
                text = "This is no job: a document is a job or a list of jobs, each with its fields."
                self.problems.append(Problem(self._place(node), "", text))

    def _read_job(self, loader: CoreLoader, node: MappingNode) -> None:
        try:
            given: dict[str, Any] = loader.construct_document(node)
            if self._owner:
                given.setdefault("owner", self._owner)
            self.wanted.append(Wanted(read_definition(given), self._place(node)))
        except MarkedYAMLError as error:
            self.problems.append(_problem_of(error, self._path))
        except InvalidFields as error:
            for field, texts in error.errors.items():
                place = self._place(_node_of(node, field))
                self.problems += [Problem(place, field, text) for text in texts]

    def _place(self, node: Node) -> Place:
        return Place(self._path, node.start_mark.line + 1)


def _node_of(node: Node, path: str) -> Node:
    """Where ``path`` (``container.volumes.0.target``) is written; what is nearest where nothing is."""
    place = node
    while path:
        for name, key, value in _parts(node):
            if path == name or path.startswith(f"{name}."):
                path, place, node = path[len(name) + 1 :], key, value
                break
        else:
            break
    return place


def _parts(node: Node) -> Iterator[tuple[str, Node, Node]]:
    """What is in ``node``: by which name or number, where that is written, and what it is."""
    if isinstance(node, MappingNode):
        yield from ((key.value, key, value) for key, value in node.value if isinstance(key, ScalarNode))
    elif isinstance(node, SequenceNode):
        yield from ((str(number), item, item) for number, item in enumerate(node.value))


def _key_of_a_list(node: MappingNode) -> ScalarNode | None:
    """The key in ``jobs: [{name: …}, …]``: a list of objects in an object without any field of a job."""
    pairs = [(key, value) for key, value in node.value if isinstance(key, ScalarNode)]
    if any(key.value in READERS for key, _ in pairs):
        return None
    return next((key for key, value in pairs if _is_list_of_objects(value)), None)


def _is_list_of_objects(node: Node) -> bool:
    return isinstance(node, SequenceNode) and all(isinstance(item, MappingNode) for item in node.value)


def _problem_of(error: YAMLError, path: str) -> Problem:
    if not isinstance(error, MarkedYAMLError):
        return Problem(Place(path, 1), "", f"Not YAML: {error}")
    mark = error.problem_mark or error.context_mark
    text = ", ".join(part for part in (error.context, error.problem) if part)
    return Problem(Place(path, mark.line + 1 if mark else 1), "", f"{text}.")
