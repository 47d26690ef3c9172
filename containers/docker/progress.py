"""The engine's account of a pull, summed up in lines for people; and what its failures mean (pure)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import Enum
from typing import Any

MEBIBYTE = 1024 * 1024
_ARRIVED = {"Download complete", "Extracting", "Pull complete", "Already exists"}
_DONE = {"Pull complete", "Already exists"}
_KNOWN = _ARRIVED | {"Pulling fs layer", "Waiting", "Downloading", "Verifying Checksum"}


class PullProgress:
    """Layers and bytes so far. Only the layers that the engine has spoken of count."""

    def __init__(self) -> None:
        self._status: dict[str, str] = {}
        self._bytes: dict[str, tuple[int, int]] = {}

    def take(self, step: Mapping[str, Any]) -> None:
        """One message of the engine's stream."""
        layer, status = str(step.get("id", "")), str(step.get("status", ""))
        if not layer or status not in _KNOWN:
            return
        self._status[layer] = status
        detail = step.get("progressDetail") or {}
        if status == "Downloading" and "total" in detail:
            self._bytes[layer] = int(detail.get("current", 0)), int(detail["total"])
        elif status in _ARRIVED and layer in self._bytes:
            self._bytes[layer] = (self._bytes[layer][1],) * 2

    def __str__(self) -> str:
        if not self._status:
            return "the registry has not answered yet"
        done = sum(status in _DONE for status in self._status.values())
        text = f"{done} of {len(self._status)} layers"
        if total := sum(size for _, size in self._bytes.values()):
            here = sum(count for count, _ in self._bytes.values())
            text += f", {here / MEBIBYTE:.1f} of {total / MEBIBYTE:.1f} MiB"
        return text


class Failure(Enum):
    """What a pull failed of; the value says it in words."""

    RATE_LIMITED = "the registry limits how often is pulled"
    TRANSIENT = "the registry cannot be reached or has a fault"
    UNAUTHORISED = "the registry does not let this engine have it: check the name and the credentials"
    MISSING = "there is no such image"
    OTHER = "the engine refuses it"

    @property
    def passing(self) -> bool:
        """Whether trying again can help."""
        return self in (Failure.RATE_LIMITED, Failure.TRANSIENT)


# In this order: a limit is often told with the status of something else. The engine hands on what the
# registry says as text only, so the text is all there is to go by.
_SIGNS = (
    (Failure.RATE_LIMITED, r"toomanyrequests|too many requests|rate limit|\b429\b"),
    (Failure.UNAUTHORISED, r"unauthorized|denied|authentication required|no basic auth|forbidden|\b40[13]\b"),
    (Failure.MISSING, r"not found|manifest unknown|name unknown|no matching manifest|no such (image|host)"),
    (
        Failure.TRANSIENT,
        r"timeout|timed out|refused|reset|eof|\b5\d\d\b|unavailable|bad gateway|unreachable|no route"
        r"|temporary failure|server misbehaving|internal server error|request canceled|broken pipe"
        r"|deadline exceeded|handshake|connection",
    ),
)


def failure(explanation: str) -> Failure:
    """Of which kind the engine's (or the registry's) words are."""
    text = explanation.lower()
    return next((kind for kind, sign in _SIGNS if re.search(sign, text)), Failure.OTHER)
