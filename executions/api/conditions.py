"""ETag and If-Match: who changes something says what he has seen, and is told where it has changed since.

A tag is a digest of what can be changed, so what only time changes (the next fire) leaves it as it is.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from rest_framework.request import Request

from executions.api.reads import Reads
from scheduler_project.kernel.errors import InvalidFields, Outdated

IF_MATCH = "If-Match"
ETAG = {"ETag": "What can be changed of it, as a tag for `If-Match`."}
_TAGS = re.compile(r'\*|(?:W/)?"[\x21\x23-\x7e]*"(?: *, *(?:W/)?"[\x21\x23-\x7e]*")*')
_TAG = re.compile(r'(?:W/)?"[\x21\x23-\x7e]*"')


def tag_of(changeable: Mapping[str, Any]) -> str:
    """The tag of what has these values, as the header has it."""
    text = json.dumps(changeable, sort_keys=True, ensure_ascii=False)
    return f'"{blake2b(text.encode(), digest_size=16).hexdigest()}"'


def require_match(request: Request, changeable: Mapping[str, Any]) -> None:
    """Outdated, where the request says If-Match and none of its tags is that of ``changeable``."""
    given = request.headers.get(IF_MATCH)
    if given is None:
        return
    tags = _read(given, IF_MATCH)
    if "*" not in tags and tag_of(changeable) not in tags:
        raise Outdated("It has changed since you read it: read it again, and make your change of that.")


def _read(value: str, name: str) -> list[str]:
    if not _TAGS.fullmatch(value.strip()):
        raise InvalidFields({name: ['A tag is needed as `ETag` has it, "…", several with commas, or *.']})
    return ["*"] if value.strip() == "*" else _TAG.findall(value)


MATCHING: dict[str, Reads[Any]] = {
    IF_MATCH: Reads(_read, {"type": "string", "pattern": f"^({_TAGS.pattern})$", "format": "etags"}).saying(
        "The `ETag` of what was read: 412 where somebody has changed it since."
    )
}
