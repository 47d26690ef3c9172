from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.runspecs import Spec

texts = st.text(st.characters(exclude_categories=["Cs"]))
SPEC = Spec(
    job_id="00000000-0000-4000-8000-000000000001",
    job_name="daily-sales-etl",
    owner="data-engineering",
    owner_id=1,
    type="Python",
    command="python etl/daily_sales_pipeline.py",
    schedule={"cron": "0 2 * * *", "timezone": "UTC"},
    parameters={"b": 1, "a": {"y": [1, 2], "x": "ü"}},
    retries=3,
    retry_delay_s=300.0,
)


@given(texts, st.dictionaries(texts, texts | st.integers() | st.none() | st.lists(texts)))
def test_read_back_from_json_it_is_the_same_spec_with_the_same_id(
    name: str, parameters: dict[str, Any]
) -> None:
    spec = replace(SPEC, job_name=name, parameters=parameters)
    again = Spec.from_json(json.loads(json.dumps(spec.to_json())))
    assert again == spec
    assert (again.canonical, again.id) == (spec.canonical, spec.id)
    assert Spec.from_json(json.loads(spec.canonical)).id == spec.id


def test_the_order_of_names_does_not_count_and_the_text_has_no_blanks() -> None:
    turned = replace(SPEC, parameters={"a": {"x": "ü", "y": [1, 2]}, "b": 1})
    assert turned.id == SPEC.id
    assert b": " not in SPEC.canonical
    assert "ü".encode() in SPEC.canonical


@pytest.mark.parametrize(
    "change",
    [
        {"command": "x"},
        {"retries": 2},
        {"env": {"A": "1"}},
        {"timeout_s": 1.0},
        {"owner": "x"},
        {"image": "x"},
        {"container": {"user": "1"}},
    ],
)
def test_whatever_is_edited_makes_another_spec(change: dict[str, Any]) -> None:
    assert replace(SPEC, **change).id != SPEC.id


def test_a_field_of_a_later_version_is_passed_over() -> None:
    assert Spec.from_json({**SPEC.to_json(), "of_tomorrow": 1}) == SPEC


def test_the_retry_policy_is_in_it() -> None:
    assert (SPEC.retry_policy.retries, SPEC.retry_policy.delay.total_seconds()) == (3, 300)
