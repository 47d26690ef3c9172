from __future__ import annotations

import re
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.worker.rendering import Rendered, TemplateRefused, check_template, render
from executions.worker.sandbox import MAX_TEXT
from scheduler_project.kernel.clock import monotonic
from tests.unit.executions.test_runspecs import SPEC

ID = UUID("019ad27d-3400-7003-8000-000000000001")
PLANNED = datetime(2026, 11, 30, 23, 30, tzinfo=timezone(timedelta(hours=-2)))  # the next day in UTC


def rendered(command: str, **fields: Any) -> Rendered:
    return render(replace(SPEC, **{"parameters": {}, "command": command, **fields}), ID, PLANNED, 2)


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{{ ds }}", "2026-12-01"),
        ("{{ ts }}", "2026-12-01T01:30:00Z"),
        ("{{ execution_id }}", str(ID)),
        ("{{ attempt }}", "2"),
        ("{{ job }}", "daily-sales-etl"),
        ("{{ params.x }}", "a b"),
        ("{{ params.x|quote }}", "'a b'"),
        ("{{ params.x|upper|replace(' ', '-') }}", "A-B"),
        ("{% for n in params.n %}{{ n }},{% endfor %}", "1,2,"),
        ("{% if attempt > 1 %}again{% endif %}", "again"),
        ("{{ params.n|join('-') }}", "1-2"),
        ("{{ 2 * 3 }} {{ 2 ** 8 }} {{ 7 % 4 }}", "6 256 3"),
        ("{% set day = ds ~ '!' %}{{ day }}\n", "2026-12-01!\n"),
        ("no template { at } all", "no template { at } all"),
    ],
)
def test_what_is_available(template: str, text: str) -> None:
    assert rendered(template, parameters={"x": "a b", "n": [1, 2]}).command == text


def test_parameters_are_rendered_at_every_depth_and_then_used() -> None:
    parameters = {
        "day": "{{ ds }}",
        "deep": {"list": ["{{ attempt }}", 5, None, True], "o": {"x": "{{ job }}"}},
    }
    found = rendered(
        "{{ params.deep.list[0] }} {{ params.day }}", parameters=parameters, env={"A": "{{ params.day }}"}
    )
    assert found.parameters == {
        "day": "2026-12-01",
        "deep": {"list": ["2", 5, None, True], "o": {"x": "daily-sales-etl"}},
    }
    assert (found.command, found.env) == ("2 2026-12-01", {"A": "2026-12-01"})


@pytest.mark.parametrize(
    ("field", "where"),
    [
        ({"command": "{{ nope }}"}, "command: "),
        ({"command": "{{ params.nope }}"}, "command: "),
        ({"command": "{{ params.nope.deeper }}"}, "command: "),
        ({"env": {"A": "{{ nope }}"}}, "env.A: "),
        ({"parameters": {"x": {"y": ["{{ nope }}"]}}}, "parameters.x.y[0]: "),
        ({"parameters": {"x": "{{ params.nope }}"}}, "parameters.x: "),
    ],
)
def test_a_name_that_is_not_there_is_refused_with_the_field(field: dict[str, Any], where: str) -> None:
    with pytest.raises(TemplateRefused, match=re.escape(where)) as refused:
        rendered(**{"command": "true", **field})
    assert "nope" in refused.value.message or "params" in refused.value.message


@pytest.mark.parametrize(
    "escape",
    [
        "{{ ''.__class__.__mro__ }}",
        "{{ ''['__class__'] }}",
        "{{ ''|attr('__class__') }}",
        "{{ self.__init__.__globals__ }}",
        "{{ self._TemplateReference__context }}",
        "{{ cycler.__init__.__globals__.os.popen('id').read() }}",
        "{{ lipsum.__globals__ }}",
        "{{ (1).__class__.__base__.__subclasses__() }}",
        "{{ '{0.__class__}'.format(1) }}",
        "{{ params.update({'x': 1}) }}",
        "{{ params.x.append(1) }}",
        "{% include '/etc/passwd' %}",
        "{% import 'os' as os %}",
        "{{ ({}.__class__.__base__|attr('__subclasses__'))() }}",
    ],
)
def test_nothing_leads_out_of_the_sandbox(escape: str) -> None:
    with pytest.raises(TemplateRefused):
        rendered(escape, parameters={"x": []})


BIG = "x" * 60_000
BOMBS = {
    "times": "{{ 'x' * 10**9 }}",
    "list times": "{{ [1] * 10**9 }}",
    "power": "{{ 10 ** 10 ** 10 }}",
    "power of power": "{{ 999999999 ** 999 }}",
    "format operator": "{{ '%01000000000d' % 1 }}",
    "format method": "{{ '{:>1000000000}'.format(1) }}",
    "format filter": "{{ '%01000000000d'|format(1) }}",
    "padding": "{{ 'x'.ljust(10**9) }}",
    "center": "{{ 'x'|center(10**9) }}",
    "indent": "{{ 'x'|indent(10**9) }}",
    "range": "{{ range(10**9)|list }}",
    "bytes": "{{ (1).to_bytes(10**9, 'big') }}",
    "replace": "{{ params.big|replace('x', params.big) }}",
    "join": "{{ range(90000)|join(params.big) }}",
    "join method": "{{ params.big.join(range(90000)|map('string')) }}",
    "doubling ~": "{% set x = 'xx' %}" + "{% set x = x ~ x %}" * 36 + "{{ x|length }}",
    "doubling +": "{% set x = 'xx' %}" + "{% set x = x + x %}" * 36 + "{{ x|length }}",
    "doubling list": "{% set x = [1] %}" + "{% set x = x + x %}" * 36 + "{{ x|length }}",
    "doubling tojson": "{{ '\"'" + "|tojson" * 40 + " }}",
    "lipsum": "{{ lipsum(n=100000) }}",
    "loops": "{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}{% endfor %}",
    "silent loops": "{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
    "loops in a block": "{% set x %}{% for a in range(99999) %}{% for b in range(99999) %}x{% endfor %}"
    "{% endfor %}{% endset %}{{ x|length }}",
    "macros": "".join(
        f"{{% macro m{n}() %}}{{{{ m{n - 1}() }}}}{{{{ m{n - 1}() }}}}{{% endmacro %}}"
        for n in range(40, 0, -1)
    )
    + "{% macro m0() %}x{% endmacro %}{{ m40() }}",
    "endless macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "long output": "{% for a in range(100) %}{{ params.big }}{% endfor %}",
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("bomb", BOMBS.values(), ids=BOMBS)
def test_a_bomb_is_refused_quickly(bomb: str) -> None:
    began = monotonic()
    with pytest.raises(TemplateRefused):
        rendered(bomb, parameters={"big": BIG})
    assert monotonic() - began < 2


def test_a_text_as_long_as_is_allowed_is_rendered() -> None:
    template = "{% for a in range(10) %}{{ params.big }}{% endfor %}"
    assert len(rendered(template, parameters={"big": BIG}).command) == 600_000 < MAX_TEXT


@given(st.text(alphabet="{}%# |.abds'\"()[]*+~-0123\n") | st.text())
def test_any_text_is_rendered_or_refused(text: str) -> None:
    try:
        rendered("{{" + text)
    except TemplateRefused as refused:
        assert refused.message.startswith("command: ")


@pytest.mark.parametrize("text", ["{{", "{% if %}", "{{ x", "{% for %}", "{{ 'a }}", "{{ x|nofilter }}"])
def test_what_is_no_template_is_found_before_it_runs(text: str) -> None:
    with pytest.raises(TemplateRefused):
        check_template(text)
        rendered(text)


def test_times_are_those_of_utc() -> None:
    assert rendered("{{ ds }}").command == PLANNED.astimezone(UTC).strftime("%Y-%m-%d")
