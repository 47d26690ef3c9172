"""RunSpec: all that a run needs, in one immutable value (pure).

Workers have no database, so a spec must suffice by itself. Its id is the digest of its
canonical JSON: equal specs are one row and one Redis key, and editing a job makes a new one.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import timedelta
from functools import cached_property
from typing import Any
from uuid import UUID

from executions.ids import spec_id
from executions.priorities import DEFAULT_QUEUE, Priority
from executions.retry_policies import RetryPolicy, read_policy


@dataclass(frozen=True, kw_only=True)
class Spec:
    """``schedule`` is the normal form of jobs/schedules, ``container`` that of containers/options.py,
    ``retry`` that of executions/retry_policies.py; times are in seconds. Secrets are named in ``container``;
    their values are nowhere in it. ``overrides``: those of the parameters that somebody gave to this run
    alone."""

    job_id: str
    job_name: str
    owner: str
    owner_id: int
    type: str
    command: str
    schedule: Mapping[str, Any]
    jitter_s: float = 0.0
    image: str = ""
    env: Mapping[str, str] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    retries: int = 0
    retry_delay_s: float = 0.0
    timeout_s: float | None = None
    container: Mapping[str, Any] = field(default_factory=dict)
    overrides: Mapping[str, Any] = field(default_factory=dict)
    queue: str = DEFAULT_QUEUE
    priority: str = str(Priority.NORMAL)
    pool: str = ""
    max_active: int | None = None
    retry: Mapping[str, Any] = field(default_factory=dict)

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, body: Mapping[str, Any]) -> Spec:
        known = {item.name for item in fields(cls)}
        return cls(**{name: value for name, value in body.items() if name in known})

    @cached_property
    def canonical(self) -> bytes:
        """The one JSON text of this spec."""
        return canonical_json(self.to_json())

    @cached_property
    def id(self) -> UUID:
        return spec_id(self.canonical)

    @property
    def retry_policy(self) -> RetryPolicy:
        delay = timedelta(seconds=self.retry_delay_s)
        return replace(read_policy(self.retry), retries=self.retries, delay=delay)


def canonical_json(body: Mapping[str, Any]) -> bytes:
    """The one JSON text of a spec's ``to_json``: sorted keys, no blanks."""
    return json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode()
