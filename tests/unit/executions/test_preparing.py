from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given

from containers.allowed import Allowed
from containers.secrets import EnvironmentSecrets, SecretMissing
from executions.runspecs import Spec
from executions.worker.assignments import Assignment
from executions.worker.commands import RunDefaults
from executions.worker.preparing import Prepared, Unstartable, prepare, prepare_to_attach
from tests.unit.containers.test_options import FULL, hostile
from tests.unit.executions.test_commands import DUE, RUN
from tests.unit.executions.test_runspecs import SPEC

DEFAULTS = RunDefaults(allowed=Allowed(secrets=("*",), gpus=1))


def assigned(**fields: Any) -> Assignment:
    spec = Spec.from_json({**SPEC.to_json(), **fields})
    return Assignment(execution_id=RUN, attempt=1, queued_at=DUE, spec=spec, spec_id=spec.id)


@given(hostile)
def test_whatever_a_message_says_of_the_container_is_prepared_or_refused(container: Any) -> None:
    for prepared in (prepare, prepare_to_attach):
        try:
            found = prepared(assigned(container=container), DEFAULTS)
        except Unstartable as error:
            assert error.reason in ("start_failed", "not_allowed") and "container" in error.message
        else:
            assert isinstance(found, Prepared) and found.container.secrets == ()


def test_a_run_that_was_allowed_when_it_began_is_taken_up_under_a_stricter_policy() -> None:
    given = assigned(container={"user": "0"})
    stricter = replace(DEFAULTS, allowed=Allowed(users=("1000",)))
    with pytest.raises(Unstartable, match=r"container\.user") as refused:
        prepare(given, stricter)
    assert refused.value.reason == "not_allowed"
    assert prepare_to_attach(given, stricter).container.user == "0"


def test_secrets_are_found_for_each_try_and_only_then() -> None:
    secret_env = {"secretEnv": FULL["secretEnv"]}
    prepared = prepare(assigned(container=secret_env), DEFAULTS)
    variables: dict[str, str] = {}
    with pytest.raises(SecretMissing, match="data-engineering/warehouse"):
        prepared.with_secrets([EnvironmentSecrets(variables)])
    variables["PUNCTUAL_SECRET_DATA_ENGINEERING__WAREHOUSE"] = "canary-5b"
    container = prepared.with_secrets([EnvironmentSecrets(variables)])
    assert container.environment()["PGPASSWORD"] == "canary-5b"
    assert container.hidden() == ("canary-5b",)
    assert "canary" not in repr(prepared) + repr(container)
