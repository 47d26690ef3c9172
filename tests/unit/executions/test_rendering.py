from __future__ import annotations

import re
import resource
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from typing import Any
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from executions.worker import sandbox
from executions.worker.rendering import Rendered, TemplateRefused, check_template, render
from executions.worker.sandbox import ENVIRONMENT, MAX_TEXT
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
SHARED = (
    "{% set ns = namespace(x=[1], y=[1]) %}{% for i in range(99) %}"
    "{% set ns.x = [ns.x, ns.x] %}{% set ns.y = [ns.y, ns.y] %}{% endfor %}"
)
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
    "join": "{{ range(9000)|join(params.big) }}",
    "join method": "{{ params.big.join(range(9000)|map('string')) }}",
    "doubling ~": "{% set x = 'xx' %}" + "{% set x = x ~ x %}" * 36 + "{{ x|length }}",
    "doubling +": "{% set x = 'xx' %}" + "{% set x = x + x %}" * 36 + "{{ x|length }}",
    "doubling list": "{% set x = [1] %}" + "{% set x = x + x %}" * 36 + "{{ x|length }}",
    "doubling tojson": "{{ '\"'" + "|tojson" * 40 + " }}",
    "lipsum": "{{ lipsum(n=100000) }}",
    "loops": "{% for a in range(40000) %}{% for b in range(40000) %}x{% endfor %}{% endfor %}",
    "silent loops": "{% for a in range(40000) %}{% for b in range(40000) %}{% endfor %}{% endfor %}",
    "loops in a block": "{% set x %}{% for a in range(40000) %}{% for b in range(40000) %}x{% endfor %}"
    "{% endfor %}{% endset %}{{ x|length }}",
    "macros": "".join(
        f"{{% macro m{n}() %}}{{{{ m{n - 1}() }}}}{{{{ m{n - 1}() }}}}{{% endmacro %}}"
        for n in range(40, 0, -1)
    )
    + "{% macro m0() %}x{% endmacro %}{{ m40() }}",
    "endless macro": "{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
    "round": "{{ 1|round(-1000000) }}",
    "tojson indent": "{{ [[1]]|tojson(100000000) }}",
    "shared lists": SHARED + "{{ ns.x }}",
    "shared lists never shown": SHARED,
    "shared lists compared": SHARED + "{{ ns.x == ns.y }}",
    "shared lists as json": SHARED + "{{ ns.x|tojson }}",
    "shared lists in a key": SHARED.replace("[", "(").replace("]", ",)") + "{{ {ns.x: 1} }}",
    "shared dicts": "{% set ns = namespace(x={}) %}{% for i in range(60) %}"
    "{% set ns.x = {'a': ns.x, 'b': ns.x} %}{% endfor %}{{ ns.x }}",
    "a namespace in itself": "{% set ns = namespace(x=1) %}{% set ns.x = [ns, ns] %}{{ ns }}",
    "kept texts": "{{ range(20000)|map('string')|map('replace', '', params.big)|list|length }}",
    "kept texts in a list": "{% set ns = namespace(x=[]) %}{% for i in range(9000) %}"
    "{% set ns.x = ns.x + [params.big ~ i] %}{% endfor %}",
    "searching": "{% for i in range(40000) %}{{ 'xxxxxxxxy' in params.big }}{% endfor %}",
    "finding": "{% for i in range(15000) %}{{ params.big.find('xxxxxxxxy') }}{% endfor %}",
    "filtering": "{% for i in range(15000) %}{% set a = params.big|title %}{% endfor %}",
    "splitting": "{% for i in range(15000) %}{% set a = params.big.split('x') %}{% endfor %}",
    "slicing": "{% for i in range(40000) %}{% set a = params.big[::2] %}{% endfor %}",
    "looking in a range": "{% for i in range(40000) %}{{ 0.5 in range(40000) }}{% endfor %}",
    "grouping": "{{ range(40000)|groupby('real')|list|length }}",
    "adding": "{% set ns = namespace(x=9) %}"
    "{% for i in range(40000) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x > 1 }}",
    "hexadecimal": "{{ ('f' ~ params.big|replace('x', 'f'))|int(base=16) * 2 }}",
    "long output": "{% for a in range(100) %}{{ params.big }}{% endfor %}",
}


# What Jinja2 and Python cannot read, or read too long.
SOURCES = {
    "parentheses": "{{ " + "(" * 5000 + "1" + ")" * 5000 + " }}",
    "digits": "{{ " + "9" * 5000 + " }}",
    "nots": "{{ " + "not " * 20_000 + "1 }}",
    "minuses": "{{" + "-" * 99_000,
    "sum": "{{ " + "+".join(["1"] * 20_000) + " }}",
    "tildes": "{{ " + "~".join(["1"] * 20_000) + " }}",
    "comparisons": "{{ 1" + " < 2" * 20_000 + " }}",
    "filters": "{{ 1" + "|string" * 5000 + " }}",
    "subscripts": "{{ ds" + "[0]" * 20_000 + " }}",
    "lists": "{{ " + "[" * 3000 + "]" * 3000 + " }}",
    "ifs": "{% if 1 %}" * 3000 + "{% endif %}" * 3000,
    "elifs": "{% if 0 %}" + "{% elif 0 %}" * 5000 + "{% endif %}",
    "fors": "{% for x in [1] %}" * 60 + "{% endfor %}" * 60,
    "set blocks": "{% set x %}" * 300 + "{% endset %}" * 300,
    "outputs": "{{ ds }}" * 12_000,
}


@pytest.mark.timeout(20)
@pytest.mark.parametrize("bomb", [*BOMBS.values(), *SOURCES.values()], ids=[*BOMBS, *SOURCES])
def test_a_bomb_is_refused_quickly_and_takes_little_memory(bomb: str) -> None:
    began, used = cpu_s(), most_memory()
    with pytest.raises(TemplateRefused):
        rendered(bomb, parameters={"big": BIG})
    assert cpu_s() - began < 2
    assert most_memory() - used < 50 << 20


REACHES = (
    "{{% for a in range(40000)|{0}(-100000) %}}"
    "{{% for b in range(40000)|{0}(-100000) %}}{{% endfor %}}{{% endfor %}}",
    "{{{{ [range(9)]|map('{0}', -1000000)|list }}}}",
    "{{% set name = '{0}' %}}{{{{ [range(9)]|map(name, -1000000)|list }}}}",
    "{{{{ [range(9)]|select('{0}')|list }}}}",
    "{{{{ [range(9)]|reject('{0}')|list }}}}",
    "{{{{ [{{'a': 1}}]|selectattr('a', '{0}')|list }}}}",
    "{{{{ [{{'a': 1}}]|rejectattr('a', '{0}')|list }}}}",
    "{{% filter {0} %}}x{{% endfilter %}}",
    "{{% set a | {0} %}}x{{% endset %}}",
    "{{{{ 1 is {0} }}}}",
    "{{{{ {0}(1) }}}}",
    "{{{{ self.{0} }}}}",
    "{{{{ range(9).{0} }}}}",
)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("name", ["_counted", "_tilde", "_weighed", "counted_hook", "environment"])
@pytest.mark.parametrize("reach", REACHES)
def test_no_template_reaches_what_counts_its_steps(reach: str, name: str) -> None:
    with pytest.raises(TemplateRefused):
        rendered(reach.format(name))


def test_no_filter_test_or_global_is_one_of_ours_alone() -> None:
    names = (*ENVIRONMENT.filters, *ENVIRONMENT.tests, *ENVIRONMENT.globals)
    assert [name for name in names if name.startswith("_")] == []


WIDE = "{% set a = '\U0001f600' %}" + "{% set a = a ~ a %}" * 19
COPIES = {
    "kept in variables": WIDE + "".join(f"{{% set a{n} = a ~ '{n}' %}}" for n in range(300)),
    "kept in a list": WIDE + "{% set ns = namespace(x=[]) %}{% for n in range(300) %}"
    "{% set ns.x = [ns.x, a ~ n] %}{% endfor %}",
    "small ones": "{% set a = '\U0001f600' %}" + "{% set a = a ~ a %}" * 7 + "{% set ns = namespace(x=[]) %}"
    "{% for n in range(40000) %}{% set ns.x = [ns.x, a ~ n, a ~ n] %}{% endfor %}",
}


@pytest.mark.parametrize(
    "use", ["{{ a|list }}", "{{ a|sort }}", "{{ range(*a) }}", "{{ [a]|map('list')|list }}"]
)
def test_a_long_text_does_not_become_as_many_items(use: str) -> None:
    used = most_memory()
    with pytest.raises(TemplateRefused, match="524288 items; at most 50000"):
        rendered(WIDE + use)
    assert most_memory() - used < 30 << 20


@pytest.mark.timeout(20)
@pytest.mark.parametrize("copies", COPIES.values(), ids=COPIES)
def test_all_that_a_run_makes_is_bounded_however_small_each_value_is(copies: str) -> None:
    used = most_memory()
    with pytest.raises(TemplateRefused):
        rendered(copies)
    assert most_memory() - used < 100 << 20


def test_rendering_ends_when_it_has_had_its_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "MAX_CPU_S", 0.001)
    with pytest.raises(TemplateRefused, match=r"^command: more than 0\.001 s of computing"):
        rendered("{% for a in range(40000) %}{% endfor %}")


@pytest.mark.parametrize(
    "template",
    [
        "{{ [nope] }}",
        "{{ (nope,) }}",
        "{{ (nope,)|list }}",
        "{{ {'a': params.nope} }}",
        "{{ {'a': [1, nope]}.a[0] }}",
        "{{ dict(a=nope) }}",
        "{{ namespace(a=nope) }}",
        "{% set ns = namespace() %}{% set ns.a = nope %}{{ ns }}",
        "{{ [params]|map(attribute='nope')|list }}",
        "{{ [params]|map(attribute='nope')|first }}",
        "{{ [params]|groupby('nope')|list }}",
        "{{ [1 if false] }}",
        "{{ [nope] ~ '' }}",
        "{{ [nope]|tojson }}",
        "{{ [nope]|join }}",
        "{% for x in [nope] %}{% endfor %}",
        "{{ nope }}",
        "{{ nope ~ '' }}",
    ],
)
def test_a_name_that_is_not_there_is_refused_wherever_it_hides(template: str) -> None:
    with pytest.raises(TemplateRefused, match="ndefined"):
        rendered(template)


def test_what_may_be_undefined_is_asked_for() -> None:
    template = (
        "{{ nope|default('a') }} {{ params.nope is defined }} "
        "{{ [params]|map(attribute='x', default=1)|list }} "
        "{% macro m(a) %}{{ a|default('b') }}{% endmacro %}{{ m() }}{{ m(nope) }}"
    )
    assert rendered(template).command == "a False [1] bb"


def test_a_complaint_does_not_grow_with_the_template() -> None:
    for template in ("{{ " + "x" * 90_000 + " }}", "{{ 1|" + "x" * 90_000 + " }}"):
        with pytest.raises(TemplateRefused) as refused:
            rendered(template)
        assert len(refused.value.message) < 600


@pytest.mark.timeout(20)
@pytest.mark.parametrize("source", SOURCES.values(), ids=SOURCES)
def test_what_cannot_be_read_is_found_when_it_is_saved(source: str) -> None:
    with pytest.raises(TemplateRefused):
        check_template(source)


@pytest.mark.timeout(20)
def test_all_templates_of_a_run_have_one_budget() -> None:
    loop = "{% for i in range(30000) %}{% endfor %}"
    began = monotonic()
    with pytest.raises(TemplateRefused, match=r"parameters\.p\d+: more than"):
        rendered("true", parameters={f"p{number}": loop for number in range(1000)})
    assert monotonic() - began < 2


@pytest.mark.parametrize(
    ("text", "complaint"),
    [("{{ '\\0' }}", "NUL"), ("{{ '\\ud800' }}", "surrogate"), ("\ud800", "surrogate"), ("\0", "NUL")],
)
@pytest.mark.parametrize("field", ["command", "env.A", "parameters.x.y"])
def test_what_no_program_can_be_given_is_refused_with_the_field(
    field: str, text: str, complaint: str
) -> None:
    fields: dict[str, Any] = {"env": {"A": text}, "parameters": {"x": {"y": text}}, "command": text}
    with pytest.raises(TemplateRefused, match=f"^{re.escape(field)}: .*{complaint}"):
        rendered(**{"command": "true", field.partition(".")[0]: fields[field.partition(".")[0]]})


def cpu_s() -> float:
    """What this process has used of the processor: a busy machine adds nothing to it."""
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def most_memory() -> int:
    """The most that this process has had, in bytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024


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
