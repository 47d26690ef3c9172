from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from jobs.definitions import READERS, read_definition
from scheduler_project.kernel.clock import thread_cpu_s
from scheduler_project.kernel.errors import InvalidFields
from tests.example_body import BODY

json_values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.sampled_from(["5m", "{{ ds }}", "now"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=10,
)


def refusals(**fields: Any) -> dict[str, list[str]]:
    given_body = {name: value for name, value in {**BODY, **fields}.items() if value is not ...}
    with pytest.raises(InvalidFields) as refused:
        read_definition(given_body)
    return refused.value.errors


@pytest.mark.parametrize("field", ["parameters", "env"])
def test_all_templates_of_a_definition_have_one_budget(field: str) -> None:
    texts = {f"p{number}": "{{ 1 }}" for number in range(3000)}
    began = thread_cpu_s()
    errors = refusals(**{field: texts})
    assert thread_cpu_s() - began < 2.5
    assert "more than 100000 steps" in errors[field][0]


def test_templates_share_their_budget_between_the_fields() -> None:
    halves = {f"p{number}": "{{ 1 }}" for number in range(500)}
    read_definition({**BODY, "parameters": halves})
    assert set(refusals(parameters=halves, env=halves, command="true")) & {"parameters", "env"}


def test_an_object_is_nested_as_deep_as_a_body_may_be() -> None:
    flat: Any = "x"
    for _ in range(63):
        flat = [flat]
    assert read_definition({**BODY, "parameters": {"a": flat}}).parameters == {"a": flat}
    assert refusals(parameters={"a": [flat]}) == {"parameters": ["It is nested more than 64 deep."]}


@pytest.mark.parametrize("field", ["retryDelay", "timeout", "jitter", "misfire"])
def test_a_length_that_is_not_whole_milliseconds_is_refused(field: str) -> None:
    length = "1.0001s"
    errors = refusals(**{field: {"maxAge": length} if field == "misfire" else length})
    assert errors == {field: ["'1.0001s' is too fine: lengths are whole milliseconds"]}


def test_of_many_unknown_fields_a_few_are_named_and_the_others_counted() -> None:
    errors = refusals(**{f"{number:06}" + "x" * 1000: 1 for number in range(20_000)})
    assert len(errors) == 5
    assert "So it is with 19995 more." in list(errors.values())[-1]
    assert len(str(errors)) < 4000


@pytest.mark.parametrize(
    "fields",
    [
        {"retryDelay": "x" * 1_000_000},
        {"type": "x" * 1_000_000},
        {"misfire": {"x" * 1_000_000: 1}},
        {"misfire": {"maxAge": "x" * 1_000_000}},
        {"schedule": "x" * 1_000_000},
        {"schedule": {"every": "x" * 1_000_000}},
        {"schedule": {"cron": "* * * * *", "timezone": "x" * 1_000_000}},
        {"schedule": {"at": "x" * 1_000_000}},
        {"env": {"PARAM_" + "x" * 60_000: "x"}},
        {"env": {"x" * 60_000: 5}},
        {"env": {"x": "{{ 1|" + "x" * 60_000 + " }}"}},
        {"parameters": {"x" * 30_000: 1, "X" * 30_000: 1}},
        {"parameters": {"x": "{{ 1|" + "x" * 60_000 + " }}"}},
        {"command": "{{ 1|" + "x" * 90_000 + " }}"},
        {"command": "'" + "x" * 90_000},
        {"command": "{% " + "x" * 90_000 + " %}"},
        {"retries": "x" * 1_000_000},
        {"jitter": "x" * 1_000_000},
        {"overlap": ["x" * 1_000_000]},
    ],
    ids=lambda fields: str(fields)[:40],
)
def test_a_refusal_does_not_grow_with_what_was_sent(fields: dict[str, Any]) -> None:
    assert len(str(refusals(**fields))) < 1500


def test_the_body_of_the_issue_is_read() -> None:
    found = read_definition(BODY)
    assert (found.name, found.type, found.owner, found.retries) == (
        "daily-sales-etl",
        "Python",
        "data-engineering",
        3,
    )
    assert (found.retry_delay, found.timeout) == (timedelta(minutes=5), timedelta(hours=1))
    assert found.parameters == {"execution_date": "{{ ds }}"}


def test_what_is_left_out_has_its_default() -> None:
    found = read_definition({name: BODY[name] for name in ("name", "type", "command", "schedule", "owner")})
    assert (found.retries, found.retry_delay, found.timeout) == (0, timedelta(minutes=5), None)
    assert (found.description, found.image, found.env, found.parameters) == ("", "", {}, {})


@pytest.mark.parametrize("field", ["name", "type", "command", "schedule", "owner"])
def test_what_is_required_is_said_to_be(field: str) -> None:
    assert refusals(**{field: ...}) == {field: ["This field is required."]}


@pytest.mark.parametrize(
    ("field", "value", "text"),
    [
        ("name", "", "blank"),
        ("name", "  ", "blank"),
        ("name", 5, "5 is not a text"),
        ("name", None, "None is not a text"),
        ("name", "x" * 201, "201 characters; at most 200"),
        ("name", "a\0b", "NUL"),
        ("type", "Perl", "'Perl' is not one of Python, Script, SQL, Container"),
        ("type", [], "[] is not one of"),
        ("type", {}, "{} is not one of"),
        ("command", "", "blank"),
        ("command", "python 'x", "No closing quotation"),
        ("command", "echo {{ ds", "Not a template"),
        ("command", "x" * 100_001, "at most 100000"),
        ("command", ["python"], "is not a text"),
        ("schedule", "every day", ""),
        ("schedule", 5, ""),
        ("schedule", {"cron": "* * * * *", "every": "5m"}, ""),
        ("owner", "", "blank"),
        ("owner", "x" * 151, "at most 150"),
        ("description", 5, "is not a text"),
        ("image", "x" * 501, "at most 500"),
        ("env", [], "is not an object"),
        ("env", {"1A": "x"}, "'1A' is not a variable's name"),
        ("env", {"Ä": "x"}, "is not a variable's name"),
        ("env", {"A": 5}, "A: 5 is not a text"),
        ("env", {"A": "{{"}, "Not a template"),
        ("parameters", "x", "is not an object"),
        ("parameters", {"a-b": 1}, "'a-b' is not a parameter's name"),
        ("parameters", {"a": 1, "A": 2}, "'a' and 'A' would both be PARAM_A"),
        ("parameters", {"a": "{{"}, "Not a template"),
        ("parameters", {"a": {"b": ["{{"]}}, "Not a template"),
        ("parameters", {"a": float("nan")}, "Not JSON"),
        ("parameters", {"a": "x" * 64_001}, "64010 characters; at most 64000"),
        ("parameters", {"a": "\0"}, "NUL"),
        ("parameters", {"a": ["\ud800"]}, "surrogate"),
        ("parameters", {"a": {"\udfff": 1}}, "surrogate"),
        ("env", {"A": "\ud800"}, "surrogate"),
        ("command", "echo \ud800", "surrogate"),
        ("description", "\ud800", "surrogate"),
        ("env", {"PUNCTUAL_ATTEMPT": "9"}, "PUNCTUAL_ATTEMPT is not for env"),
        ("env", {"PARAM_DAY": "9"}, "PARAM_DAY is not for env"),
        ("name", "a\x1b[2Jb", "U+001B"),
        ("name", "a\nb", "U+000A"),
        ("owner", "a\x9bb", "U+009B"),
        ("image", "a\x7fb", "U+007F"),
        ("name", "a\u2028b", "U+2028"),
        ("name", "a\u202eb", "U+202E"),
        ("name", "a\u2066b", "U+2066"),
        ("command", "echo {{ " + "(" * 5000 + " }}", "Not a template"),
        ("env", {"A": "{{ " + "9" * 5000 + " }}"}, "Not a template"),
        ("parameters", {"a": ["{{ ds|nofilter }}"]}, "nofilter"),
        ("retries", -1, "-1 is not a whole number from 0 to 100"),
        ("retries", 101, "101 is not a whole number from 0 to 100"),
        ("retries", True, "True is not"),
        ("retries", "3", "'3' is not"),
        ("retries", 1.5, "1.5 is not"),
        ("retries", None, "None is not"),
        ("retryDelay", "soon", "'soon' is not a length of time"),
        ("retryDelay", "999999999w", "is not between"),
        ("retryDelay", -1, "-1 is not between 0s and"),
        ("retryDelay", None, "None is not"),
        ("timeout", "0s", "'0s' is not between 1s and"),
        ("timeout", "x", "'x' is not a length of time"),
        ("nmae", "x", "'nmae' is not a field of a job. Allowed: name, task, type,"),
    ],
)
def test_each_refusal_names_its_field_and_says_why(field: str, value: Any, text: str) -> None:
    errors = refusals(**{field: value})
    assert list(errors) == [field]
    assert text in errors[field][0]
    assert errors[field][0]


def test_all_that_is_wrong_is_said_at_once() -> None:
    assert set(refusals(name="", retries=-1, timeout="x", nmae=1, owner=...)) == {
        "name", "retries", "timeout", "nmae", "owner",
    }  # fmt: skip


@pytest.mark.parametrize(
    "text", ["a\\u0000b", "\\ud800", "naïve – 日本\N{GRINNING FACE} e\N{COMBINING ACUTE ACCENT}"]
)
def test_a_text_that_only_spells_an_escape_is_a_text_like_others(text: str) -> None:
    found = read_definition({**BODY, "name": text, "env": {"A": text}, "parameters": {"a": text}})
    assert (found.name, found.env["A"], found.parameters["a"]) == (text, text, text)


def test_a_container_needs_an_image_and_may_do_without_a_command() -> None:
    assert refusals(type="Container", command="") == {"image": ["A job of type Container needs an image."]}
    assert read_definition({**BODY, "type": "Container", "command": "", "image": "x:1"}).image == "x:1"


@settings(max_examples=150)
@given(st.dictionaries(st.sampled_from(list(READERS)) | st.text(), json_values, max_size=14), st.booleans())
def test_any_json_is_read_or_refused_by_name(body: dict[str, Any], on_top: bool) -> None:
    try:
        read_definition({**BODY, **body} if on_top else body)
    except InvalidFields as refused:
        assert refused.errors
        assert all(texts and all(texts) for texts in refused.errors.values())
