"""What the audit trail does not keep: a trail cannot be mended when a password has got into it."""

from __future__ import annotations

import json
import re
from typing import Any

HIDDEN = "••••"
MOST = 4000  # characters of one value
_NAMES = (
    r"(?:pass(?:word|wd|phrase)?|pwd|(?<![a-z])pw|pw(?![a-z])|secret|token|credential|[_-]key|api_?key"
    r"|private_?key|access_?key|auth(?!or)|authori[sz]|dsn|webhook|bearer|signing|signature|cookie)"
)
_SECRET_NAME = re.compile(_NAMES, re.I)
_VARIABLES = re.compile(r"env(?:s|iron(?:ment)?)?|(?:env(?:ironment)?_?)?var(?:s|iables)?", re.I)
_REST_OF_NAME = r"[\w.-]{0,64}"
_VALUE = r"""[\[{(]{0,3}(?:"(?:[^"\\]|\\[\s\S])*(?:"|\\?\Z)|'(?:[^'\\]|\\[\s\S])*(?:'|\\?\Z)|[^\s'"&;,|]+)"""
_IN_TEXT = tuple(
    (re.compile(pattern, re.I), kept)
    for pattern, kept in (
        (r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}-----|\Z)", HIDDEN),
        (r"""(?<=://)([^\s/:@'"]{0,200}):[^\s'"]{1,500}@""", rf"\1:{HIDDEN}@"),
        (r"""(?<=://)[^\s/:@'"]{1,500}@""", f"{HIDDEN}@"),
        (r"""(authorization["']?\s{0,3}[:=]\s{0,3}["']?)[^"'\n]+""", rf"\1{HIDDEN}"),
        (r"\b(bearer|basic)(\s{1,3})[\w.~+/=-]{6,}", rf"\1\2{HIDDEN}"),
        (
            r"""((?:^|\s)(?:-u\s{0,3}|--(?:proxy-)?user[=\s]\s{0,3})["']?[^\s:'"]{0,200}):[^\s'"]+""",
            rf"\1:{HIDDEN}",
        ),
        (rf"(--[\w.-]{{0,64}}?{_NAMES}{_REST_OF_NAME}\s{{1,3}})(?!-){_VALUE}", rf"\1{HIDDEN}"),
        (rf"""({_NAMES}{_REST_OF_NAME}["']?\s{{0,3}}[:=]\s{{0,3}}){_VALUE}""", rf"\1{HIDDEN}"),
        (r"\b(?:gh[a-z]_|github_pat_|glpat-|xox[a-z]-|sk_live_|punctual_|AKIA)[\w-]{12,}", HIDDEN),
        (r"\beyJ[\w-]{10,}\.[\w-]{4,}\.[\w-]*", HIDDEN),
    )
)


def hidden(_value: object) -> str:
    """For django-auditlog's mask_callable: it would show half."""
    return HIDDEN


def masked(value: Any, name: str = "") -> Any:
    """``value`` without what looks like a secret: by its name, or by how it stands in a text; shortened.

    Of variables (``env`` and the like, in whatever form, and objects of a ``name`` and a ``value``) the names
    alone are kept.
    """
    if value not in (None, "") and _SECRET_NAME.search(name):
        return HIDDEN
    if value and _VARIABLES.fullmatch(name):
        value = _names_of(value)
    elif isinstance(value, str):
        return _short(_without_secrets(value))
    elif isinstance(value, dict):
        value = _masked_object(value)
    elif isinstance(value, list):
        value = [masked(item) for item in value]
    else:
        return value
    text = json.dumps(value, ensure_ascii=False)
    return value if len(text) <= MOST else _short(text)


def _masked_object(value: dict[Any, Any]) -> dict[str, Any]:
    """Of a variable, also where it stands alone: its name, and what it refers to."""
    variable = {"name", "value"} <= value.keys()
    return {
        key: HIDDEN if variable and key == "value" else masked(item, str(key)) for key, item in value.items()
    }


def _names_of(variables: Any) -> Any:
    if isinstance(variables, dict):
        return dict.fromkeys(map(str, variables), HIDDEN)
    if isinstance(variables, list):
        return [_name_of(item) for item in variables]
    return HIDDEN


def _name_of(variable: Any) -> Any:
    """As Kubernetes has it: a name, and a value or what it comes from."""
    if not isinstance(variable, dict) or not isinstance(variable.get("name"), str):
        return HIDDEN
    known = {"name": str, "valueFrom": dict}
    return {
        key: masked(item, key) if isinstance(item, known.get(key, ())) else HIDDEN
        for key, item in variable.items()
    }


def _without_secrets(text: str) -> str:
    for pattern, kept in _IN_TEXT:
        text = pattern.sub(kept, text)
    return text


def _short(text: str) -> str:
    return text if len(text) <= MOST else f"{text[:MOST]}… ({len(text)} characters)"
