"""The token that a run finds in its environment: with it the run, and nobody else, reports its own end.

It may also look at itself, and at nothing else; that it may when it has ended, too.

It holds which attempt of which run it is for, and a keyed digest over that; nothing is stored. So it is good
as long as SECRET_KEY is the same in web and workers, and as the attempt goes on.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass
from hashlib import sha256
from uuid import UUID

PREFIX = "punctual_run_"
VARIABLE = "PUNCTUAL_RUN_TOKEN"
_PURPOSE = b"punctual: tokens of runs, 1"


@dataclass(frozen=True, slots=True)
class RunIdentity:
    """Who calls with such a token: one attempt of one run."""

    execution_id: UUID
    attempt: int
    is_authenticated: bool = True
    is_active: bool = True

    @property
    def pk(self) -> str:
        return f"run {self.execution_id} {self.attempt}"

    def get_username(self) -> str:
        return "the run itself"


def run_token(secret_key: str, execution_id: UUID, attempt: int) -> str:
    return f"{PREFIX}{execution_id.hex}_{attempt}_{_digest(secret_key, execution_id, attempt)}"


def read_run_token(secret_key: str, token: str) -> RunIdentity | None:
    """Whose token this is; None for what is none."""
    parts = token.removeprefix(PREFIX).split("_")
    try:
        identity = RunIdentity(UUID(hex=parts[0]), int(parts[1]))
        expected = run_token(secret_key, identity.execution_id, identity.attempt)
    except (ValueError, LookupError):
        return None
    return identity if hmac.compare_digest(expected.encode(), token.encode()) else None


def _digest(secret_key: str, execution_id: UUID, attempt: int) -> str:
    key = hmac.digest(secret_key.encode(), _PURPOSE, sha256)
    return hmac.digest(key, f"{execution_id} {attempt}".encode(), sha256).hex()
