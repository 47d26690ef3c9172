from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from containers.allowed import Allowed
from containers.options import ContainerOptions, read_options
from executions.ids import execution_id
from executions.worker.assignments import Assignment
from executions.worker.commands import RunDefaults, command_words, container_spec, variable_name
from executions.worker.rendering import Rendered, TemplateRefused
from tests.unit.containers.test_options import FULL
from tests.unit.executions.test_runspecs import SPEC

DUE = datetime(2026, 11, 30, 2, tzinfo=UTC)
RUN = execution_id(UUID(int=1), DUE, "schedule", 3)
DEFAULTS = RunDefaults(
    images={"Python": "python:3"},
    passed_env={"PGHOST": "db", "PARAM_DAY": "not this"},
    memory_bytes=1 << 30,
    start_timeout=timedelta(minutes=2),
    grace=timedelta(seconds=7),
)


def container(rendered: Rendered, **fields: Any) -> Any:
    spec = replace(SPEC, **fields)
    given = Assignment(execution_id=RUN, attempt=2, queued_at=DUE, spec=spec, spec_id=spec.id)
    return container_spec(given, rendered, read_options(spec.container), DEFAULTS)


@pytest.mark.parametrize(
    ("kind", "command", "words"),
    [
        (
            "Python",
            "python load.py --day '2026 11' \"a b\"",
            ("python", "load.py", "--day", "2026 11", "a b"),
        ),
        ("Script", "a | b 'c", ("sh", "-c", "a | b 'c")),
        ("SQL", "SELECT ';'", ("psql", "--no-psqlrc", "--set", "ON_ERROR_STOP=1", "--command", "SELECT ';'")),
        ("Container", "run it", ("run", "it")),
        ("Container", "", ()),
    ],
)
def test_each_type_has_its_way_to_start(kind: str, command: str, words: tuple[str, ...]) -> None:
    assert command_words(kind, command) == words


@pytest.mark.parametrize("kind", ["Python", "Container"])
def test_quotes_that_do_not_pair_are_refused_with_the_command(kind: str) -> None:
    with pytest.raises(TemplateRefused, match='No closing quotation in "python \'x"'):
        command_words(kind, "python 'x")


def test_a_long_command_is_not_repeated_in_full() -> None:
    with pytest.raises(TemplateRefused) as refused:
        command_words("Python", "python 'x" + "x" * 90_000)
    assert len(refused.value.message) < 200


def test_parameters_and_context_reach_the_program() -> None:
    parameters = {"day": "2026-11-30", "n": 5, "flag": True, "none": None, "deep": {"ü": [1]}}
    spec = container(Rendered("true", {"MINE": "1", "PGHOST": "other"}, parameters))
    env = spec.env
    assert (env["PARAM_DAY"], env["PARAM_N"], env["PARAM_FLAG"], env["PARAM_NONE"]) == (
        "2026-11-30",
        "5",
        "true",
        "null",
    )
    assert env["PARAM_DEEP"] == '{"ü": [1]}'
    assert json.loads(env["PUNCTUAL_PARAMETERS"]) == parameters
    assert (env["MINE"], env["PGHOST"]) == ("1", "other")
    assert (env["PUNCTUAL_EXECUTION_ID"], env["PUNCTUAL_ATTEMPT"]) == (str(RUN), "2")
    assert (env["PUNCTUAL_JOB"], env["PUNCTUAL_SCHEDULED_FOR"]) == (
        SPEC.job_name,
        "2026-11-30T02:00:00+00:00",
    )


def test_a_jobs_environment_cannot_speak_for_the_scheduler() -> None:
    claimed = {"PUNCTUAL_ATTEMPT": "9", "PUNCTUAL_PARAMETERS": "{}", "PARAM_A": "2"}
    env = container(Rendered("true", claimed, {"a": 1})).env
    assert (env["PUNCTUAL_ATTEMPT"], env["PUNCTUAL_PARAMETERS"], env["PARAM_A"]) == ("2", '{"a": 1}', "1")


def test_limits_and_image_come_from_the_spec_and_else_from_the_deployment() -> None:
    plain = container(Rendered("true", {}, {}))
    assert (plain.image, plain.memory_bytes, plain.timeout_s, plain.cpus) == ("python:3", 1 << 30, None, None)
    assert (plain.start_timeout_s, plain.grace_s) == (120, 7)
    limits = {"resources": {"memory": {"limit": "32Mi"}, "cpu": {"limit": 0.5}}}
    own = container(Rendered("true", {}, {}), image="mine:1", container=limits, timeout_s=60.0)
    assert (own.image, own.memory_bytes, own.timeout_s, own.cpus) == ("mine:1", 1 << 25, 60.0, 0.5)


def test_the_container_is_named_after_run_and_attempt_and_labelled() -> None:
    spec = container(Rendered("true", {}, {}))
    assert RUN.hex in spec.name.replace("-", "")
    assert spec.labels["punctual.execution"] == str(RUN)
    assert (spec.labels["punctual.attempt"], spec.labels["punctual.job"]) == ("2", SPEC.job_name)
    given = Assignment(execution_id=RUN, attempt=3, queued_at=DUE, spec=SPEC, spec_id=SPEC.id)
    assert container_spec(given, Rendered("true", {}, {}), ContainerOptions(), DEFAULTS).name != spec.name


def test_everything_that_container_says_reaches_the_runtime() -> None:
    spec = container(Rendered("true", {}, {}), container=FULL)
    options = read_options(FULL)
    assert (spec.working_dir, spec.user, spec.read_only_root) == ("/srv/app", "1000:1000", False)
    assert (spec.memory_bytes, spec.memory_request_bytes) == (1 << 30, 256 << 20)
    assert (spec.cpus, spec.cpus_request, spec.gpus, spec.pids_limit) == (2, 0.25, 1, 200)
    assert (spec.ephemeral_bytes, spec.ephemeral_request_bytes) == (2 << 30, None)
    assert (spec.volumes, spec.tolerations) == (options.volumes, options.tolerations)
    assert (spec.network, spec.pull_policy, spec.pull_secret) == (
        "warehouse",
        "Always",
        "registry.example.org",
    )
    assert (spec.node_selector, spec.service_account) == ({"kubernetes.io/arch": "amd64"}, "loader")
    assert (spec.start_timeout_s, spec.grace_s) == (600, 90)
    assert spec.pod_template == FULL["podTemplate"]
    assert spec.labels["example.org/tier"] == "nightly" and spec.labels["punctual.job"] == SPEC.job_name
    assert spec.secrets == () and "PGPASSWORD" not in spec.env


def test_a_limit_of_the_deployment_is_that_of_a_run_that_asks_for_none() -> None:
    allowed = Allowed(cpus=4, ephemeral_bytes=1 << 30, pids=100)
    options = read_options({"resources": {"memory": {"request": "2Gi"}}})
    given = Assignment(execution_id=RUN, attempt=1, queued_at=DUE, spec=SPEC, spec_id=SPEC.id)
    spec = container_spec(given, Rendered("true", {}, {}), options, replace(DEFAULTS, allowed=allowed))
    assert (spec.cpus, spec.ephemeral_bytes, spec.pids_limit) == (4, 1 << 30, 100)
    assert spec.memory_bytes == spec.memory_request_bytes == 2 << 30


@pytest.mark.parametrize(
    ("parameter", "variable"),
    [("execution_date", "PARAM_EXECUTION_DATE"), ("aB1", "PARAM_AB1"), ("x-y.z", "PARAM_X_Y_Z")],
)
def test_a_parameters_variable(parameter: str, variable: str) -> None:
    assert variable_name(parameter) == variable
