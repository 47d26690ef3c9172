from __future__ import annotations

from uuid import UUID

import pytest

from containers.spec import ContainerSpec, container_name
from scheduler_project.kernel.errors import InvalidValue

ID = UUID("019b4f6c-8000-7abc-8def-0123456789ab")


def test_the_name_comes_from_execution_and_attempt():
    assert container_name(ID, 3) == "punctual-019b4f6c80007abc8def0123456789ab-3"


def test_a_name_is_all_that_a_spec_needs_and_the_rest_is_safe():
    spec = ContainerSpec(name=container_name(ID, 1))
    assert spec.read_only_root
    assert spec.pids_limit == 1024
    assert (spec.argv, spec.memory_bytes, spec.timeout_s, spec.grace_s) == ((), None, None, 10.0)


@pytest.mark.parametrize(
    ("changes", "field", "named"),
    [
        ({"name": "a/b"}, "name", "a/b"),
        ({"name": ""}, "name", "''"),
        ({"name": "../up"}, "name", "up"),
        ({"name": ".hidden"}, "name", "hidden"),
        ({"argv": ("",)}, "command", "empty"),
        ({"argv": ("a\0b",)}, "command", "NUL"),
        ({"argv": ("a\ud800b",)}, "command", "surrogate"),
        ({"env": {"A": "\udfff"}}, "environment", "surrogate"),
        ({"env": {"1A": "x"}}, "environment", "1A"),
        ({"env": {"A=B": "x"}}, "environment", "A=B"),
        ({"env": {"A": "x\0"}}, "environment", "A"),
        ({"memory_bytes": 1024}, "memory", "1024"),
        ({"cpus": 0.0}, "cpus", "0.0"),
        ({"pids_limit": 1}, "pidsLimit", "1"),
        ({"timeout_s": 0.0}, "timeout", "0.0"),
        ({"start_timeout_s": 0.0}, "startTimeout", "0.0"),
        ({"grace_s": -1.0}, "gracePeriod", "-1.0"),
    ],
)
def test_what_no_runtime_can_take_is_refused_by_name(changes, field, named):
    with pytest.raises(InvalidValue) as caught:
        ContainerSpec(**{"name": "run", **changes})
    assert caught.value.field == field
    assert named in caught.value.message
