"""``$(NAME)`` in a container's words and values, as the kubelet expands it; ``$$`` is a ``$``."""

from __future__ import annotations

import re
from collections.abc import Mapping

_REFERENCE = re.compile(r"\$(?:\$|\(([^)]*)\))")


def expanded(text: str, variables: Mapping[str, str]) -> str:
    """A reference to a variable that is not there stays as it is."""

    def replacement(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        return variables.get(found[1], found[0])

    return _REFERENCE.sub(replacement, text)
