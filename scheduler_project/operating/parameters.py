"""Parameters of a run as they are given on a command line (pure)."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from jobs.definitions import read_field
from scheduler_project.kernel.errors import InvalidFields, InvalidValue
from scheduler_project.kernel.texts import shown


def read_parameters(words: Sequence[str]) -> dict[str, Any]:
    """``NAME=VALUE`` each. A value that is JSON is what it says (``3``, ``true``, ``"3"``); others are texts.

    InvalidFields, as of REST, for what no run may have.
    """
    given: dict[str, Any] = {}
    for word in words:
        name, sign, value = word.partition("=")
        if not sign or not name:
            raise InvalidValue(f"{shown(word)} is not a parameter: write NAME=VALUE.", field="parameters")
        if name in given:
            raise InvalidValue(f"The parameter {shown(name)} is given twice.", field="parameters")
        given[name] = _value(value)
    try:
        found: dict[str, Any] = read_field("parameters", given)
    except InvalidValue as error:
        raise InvalidFields({"parameters": [error.message]}) from error
    return found


def _value(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=_refused)
    except (ValueError, RecursionError):
        return text


def _refused(name: str) -> Any:
    """NaN and Infinity are no JSON."""
    raise ValueError(name)
