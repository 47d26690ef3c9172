from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from containers.options import FIELDS, ContainerOptions, merged, read_options
from containers.volumes import Toleration, Volume, VolumeKind
from scheduler_project.kernel.errors import InvalidFields

FULL: dict[str, Any] = {
    "workingDir": "/srv/app",
    "secretEnv": {"PGPASSWORD": "data-engineering/warehouse"},
    "resources": {
        "cpu": {"request": 0.25, "limit": 2},
        "memory": {"request": "256Mi", "limit": "1Gi"},
        "ephemeralStorage": {"limit": "2Gi"},
        "gpu": 1,
        "pids": 200,
    },
    "user": "1000:1000",
    "readOnlyRoot": False,
    "volumes": [
        {"source": "/data/sales", "target": "/data"},
        {"claim": "models", "target": "/models", "readOnly": False},
        {"scratch": "64Mi", "target": "/dev/shm"},
    ],
    "network": "warehouse",
    "labels": {"example.org/tier": "nightly", "team": ""},
    "pullPolicy": "Always",
    "pullSecret": "registry.example.org",
    "nodeSelector": {"kubernetes.io/arch": "amd64"},
    "tolerations": [
        {"key": "gpu", "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 0},
    ],
    "serviceAccount": "loader",
    "gracePeriod": "1m30s",
    "startTimeout": "10m",
    "podTemplate": {"metadata": {"annotations": {"a.b/c": "d"}}, "spec": {"affinity": {}}},
}


def test_every_field_is_read_and_written_as_it_was():
    assert set(FULL) == set(FIELDS)
    options = read_options(FULL)
    assert json.loads(json.dumps(options.to_json())) == FULL | {
        "labels": dict(sorted(FULL["labels"].items()))
    }
    assert (options.cpus_request, options.cpus, options.memory_bytes) == (0.25, 2.0, 1 << 30)
    assert options.volumes[0] == Volume(kind=VolumeKind.SOURCE, name="/data/sales", target="/data")
    assert options.volumes[2].size_bytes == 64 << 20 and not options.volumes[2].read_only
    assert options.tolerations == (Toleration(key="gpu", operator="Exists", effect="NoExecute", seconds=0),)


def test_nothing_said_is_nothing_written_and_null_is_as_good():
    assert read_options({}) == read_options(dict.fromkeys(FIELDS)) == ContainerOptions()
    assert ContainerOptions().to_json() == {}


@pytest.mark.parametrize(
    ("written", "normal"),
    [
        ({"resources": {"memory": {"limit": 512 << 20}}}, {"resources": {"memory": {"limit": "512Mi"}}}),
        ({"resources": {"memory": {"limit": "10M"}}}, {"resources": {"memory": {"limit": 10_000_000}}}),
        ({"resources": {"cpu": {"limit": "500m"}}}, {"resources": {"cpu": {"limit": 0.5}}}),
        ({"resources": {"cpu": {"limit": "1.250"}}}, {"resources": {"cpu": {"limit": 1.25}}}),
        ({"resources": {"cpu": {"limit": 2.0}}}, {"resources": {"cpu": {"limit": 2}}}),
        ({"gracePeriod": 90}, {"gracePeriod": "1m30s"}),
        ({"gracePeriod": "0s"}, {"gracePeriod": "0s"}),
        ({"readOnlyRoot": True, "volumes": [], "network": None, "labels": {}}, {}),
        ({"tolerations": [{"operator": "Exists"}]}, {"tolerations": [{"operator": "Exists"}]}),
    ],
)
def test_several_ways_to_write_it_have_one_normal_form(written, normal):
    assert read_options(written).to_json() == normal


WRONG = [
    ("container", [], "[]"),
    ("container", "text", "'text'"),
    ("container.image", {"image": "x"}, "workingDir"),
    ("container.resources", {"resources": 3}, "cpu, memory"),
    ("container.resources.ram", {"resources": {"ram": 1}}, "memory"),
    ("container.resources.memory.limit", {"resources": {"memory": {"limit": "12 potatoes"}}}, "potatoes"),
    ("container.resources.memory.limit", {"resources": {"memory": {"limit": "500m"}}}, "Mi"),
    ("container.resources.memory.limit", {"resources": {"memory": {"limit": 1024}}}, "6Mi"),
    ("container.resources.memory.limit", {"resources": {"memory": {"limit": True}}}, "True"),
    ("container.resources.memory.limit", {"resources": {"memory": {"limit": 10**30}}}, "size"),
    ("container.resources.memory.limit", {"resources": {"memory": {"limit": float("nan")}}}, "nan"),
    (
        "container.resources.memory.request",
        {"resources": {"memory": {"limit": "1Gi", "request": "2Gi"}}},
        "2Gi is more than the limit, 1Gi",
    ),
    ("container.resources.cpu.limit", {"resources": {"cpu": {"limit": 0}}}, "0.01"),
    ("container.resources.cpu.limit", {"resources": {"cpu": {"limit": 0.0101}}}, "thousandth"),
    ("container.resources.cpu.request", {"resources": {"cpu": {"request": 1e300}}}, "0.01"),
    ("container.resources.gpu", {"resources": {"gpu": 0.5}}, "0.5"),
    ("container.resources.pids", {"resources": {"pids": 1}}, "2"),
    ("container.workingDir", {"workingDir": "etl"}, "absolute"),
    ("container.workingDir", {"workingDir": "/etl/../etc"}, "'..'"),
    ("container.workingDir", {"workingDir": "/a\nb"}, "U+000A"),
    ("container.workingDir", {"workingDir": "/data/{{ ds }}"}, "templates"),
    ("container.secretEnv", {"secretEnv": ["X"]}, "names and texts"),
    ("container.secretEnv.1A", {"secretEnv": {"1A": "team/x"}}, "1A"),
    ("container.secretEnv.PUNCTUAL_X", {"secretEnv": {"PUNCTUAL_X": "team/x"}}, "scheduler"),
    ("container.secretEnv.A", {"secretEnv": {"A": "../../etc/passwd"}}, "passwd"),
    ("container.secretEnv.A", {"secretEnv": {"A": "/etc/passwd"}}, "passwd"),
    ("container.secretEnv.A", {"secretEnv": {"A": "a__b"}}, "words"),
    ("container.secretEnv.A", {"secretEnv": {"A": None}}, "None"),
    ("container.user", {"user": "root wheel"}, "1000:1000"),
    ("container.readOnlyRoot", {"readOnlyRoot": "no"}, "true or false"),
    ("container.network", {"network": "container:other"}, "none"),
    ("container.labels.punctual.job", {"labels": {"punctual.job": "x"}}, "scheduler"),
    ("container.labels.a", {"labels": {"a": "b c"}}, "letters"),
    ("container.pullPolicy", {"pullPolicy": "always"}, "IfNotPresent"),
    ("container.serviceAccount", {"serviceAccount": "Team A"}, "small letters"),
    ("container.gracePeriod", {"gracePeriod": "2h"}, "1h"),
    ("container.startTimeout", {"startTimeout": "0s"}, "1s"),
    ("container.volumes", {"volumes": {"a": "b"}}, "not a list"),
    ("container.volumes.0", {"volumes": [{"target": "/x"}]}, "exactly one"),
    ("container.volumes.0", {"volumes": [{"source": "/a", "claim": "b", "target": "/x"}]}, "exactly one"),
    ("container.volumes.0.target", {"volumes": [{"source": "/a"}]}, "required"),
    ("container.volumes.0.target", {"volumes": [{"source": "/a", "target": "/proc/1"}]}, "/proc"),
    ("container.volumes.0.source", {"volumes": [{"source": "/a/../b", "target": "/x"}]}, "normal form"),
    ("container.volumes.0.source", {"volumes": [{"source": "/a:/b", "target": "/x"}]}, "':'"),
    (
        "container.volumes.1.target",
        {"volumes": [{"claim": "a", "target": "/x"}, {"claim": "b", "target": "/x"}]},
        "two volumes",
    ),
    ("container.tolerations.0.key", {"tolerations": [{"effect": "NoSchedule"}]}, "Exists"),
    ("container.tolerations.0.effect", {"tolerations": [{"key": "a", "effect": "No"}]}, "NoExecute"),
    ("container.user", {"user": "root:\0"}, "NUL"),
    ("container.user", {"user": "\ud800"}, "surrogate"),
    ("container.resources.cpu.limit", {"resources": {"cpu": {"limit": float("inf")}}}, "CPUs"),
    ("container.labels.a", {"labels": {"a": "x" * 70_000}}, "70000"),
    ("container.''", {"": 1}, "not a field"),
    ("container.'a\\x00'", {"a\0": 1}, "not a field"),
    ("container.podTemplate", {"podTemplate": {"kind": "Pod"}}, "metadata, spec"),
    ("container.podTemplate", {"podTemplate": {"spec": {"a": float("inf")}}}, "JSON"),
    ("container.podTemplate", {"podTemplate": {"spec": {"a": "\0"}}}, "NUL"),
    ("container.podTemplate", {"podTemplate": {"spec": {"affinity.x\nhostNetwork": 1}}}, "field"),
    ("container.podTemplate", {"podTemplate": {"spec": {"affinity.x": {"y": 1}}}}, "affinity.x"),
    ("container.podTemplate", {"podTemplate": {"metadata": {"labels.x": {}}}}, "labels.x"),
    (
        "container.podTemplate",
        {"podTemplate": {"metadata": {"labels": {"punctual.execution": "x"}}}},
        "metadata.labels.punctual.execution",
    ),
]


@pytest.mark.parametrize(("path", "given", "named"), WRONG)
def test_what_is_wrong_is_named_by_its_path(path, given, named):
    with pytest.raises(InvalidFields) as caught:
        read_options(given)
    assert list(caught.value.errors) == [path]
    assert named in caught.value.errors[path][0]


def test_all_that_is_wrong_is_said_at_once():
    with pytest.raises(InvalidFields) as caught:
        read_options({"user": 3, "resources": {"gpu": -1, "cpu": 1}, "volumes": [{}], "tolerations": [1]})
    assert set(caught.value.errors) == {
        "container.user",
        "container.resources.gpu",
        "container.resources.cpu",
        "container.volumes.0",
        "container.volumes.0.target",
        "container.tolerations.0",
        "container.tolerations.0.key",
    }


def test_what_a_job_says_goes_before_what_its_task_says_name_by_name():
    task = {"resources": {"memory": {"limit": "1Gi"}, "gpu": 1}, "volumes": [1], "labels": {"a": "b"}}
    job = {"resources": {"memory": {"limit": "2Gi"}, "pids": 9}, "volumes": [2]}
    assert merged(task, job) == {
        "resources": {"memory": {"limit": "2Gi"}, "gpu": 1, "pids": 9},
        "volumes": [2],
        "labels": {"a": "b"},
    }


# --- properties ---------------------------------------------------------------------------------

word = st.from_regex(r"[a-z][a-z0-9]{0,8}", fullmatch=True)
paths = st.lists(word, min_size=1, max_size=3).map(lambda words: "/" + "/".join(words))
sizes = st.integers(6 << 20, 1 << 50)
amounts = st.fixed_dictionaries({}, optional={"limit": sizes})
cpu_amounts = st.integers(10, 1024_000).map(lambda thousandths: thousandths / 1000)
contents = st.one_of(
    st.builds(lambda value: {"source": value, "readOnly": False}, paths),
    *(
        st.builds(lambda value, kind=kind: {kind: value}, word.map("x".__add__))
        for kind in ("claim", "volume")
    ),
    st.builds(lambda value: {"scratch": value}, sizes),
)
well_formed = st.fixed_dictionaries(
    {},
    optional={
        "workingDir": paths,
        "secretEnv": st.dictionaries(word.map(str.upper), st.builds("{}/{}".format, word, word), max_size=3),
        "resources": st.fixed_dictionaries(
            {},
            optional={
                "memory": amounts,
                "ephemeralStorage": amounts,
                "cpu": st.fixed_dictionaries({}, optional={"limit": cpu_amounts}),
                "gpu": st.integers(0, 1024),
                "pids": st.integers(2, 4_000_000),
            },
        ),
        "user": word,
        "readOnlyRoot": st.booleans(),
        "volumes": st.lists(contents, max_size=3).map(
            lambda listed: [{**item, "target": f"/mnt/{number}"} for number, item in enumerate(listed)]
        ),
        "labels": st.dictionaries(word.map("x".__add__), word, max_size=3),
        "gracePeriod": st.integers(0, 3600),
        "podTemplate": st.fixed_dictionaries({}, optional={"spec": st.dictionaries(word, word, max_size=2)}),
    },
)
scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20)
hostile = st.recursive(
    scalars,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(
            st.sampled_from([*FIELDS, "cpu", "memory", "limit", "request", "source", "target", "key", "spec"])
            | st.text(max_size=8),
            inner,
            max_size=5,
        )
    ),
    max_leaves=25,
)


@given(well_formed)
def test_the_normal_form_is_read_as_the_same_options_and_written_as_itself(written):
    options = read_options(written)
    normal = json.loads(json.dumps(options.to_json(), allow_nan=False))
    assert read_options(normal) == options
    assert read_options(normal).to_json() == normal


@given(hostile)
def test_whatever_json_comes_is_read_or_refused_with_paths(value):
    try:
        options = read_options(value)
    except InvalidFields as error:
        assert error.errors and all(path.split(".")[0] == "container" for path in error.errors)
        assert all(texts and all(len(text) < 1000 for text in texts) for texts in error.errors.values())
    else:
        assert read_options(options.to_json()) == options


def test_depth_length_and_number_without_end_are_refused_in_short_words():
    deep: object = "x"
    for _ in range(5000):
        deep = {"spec": deep}
    endless = (deep, ["x"] * 100_000, dict.fromkeys(map(str, range(100_000)), "x"), "x" * 1_000_000, 10**5000)
    for name in FIELDS:
        for value in endless:
            with pytest.raises(InvalidFields) as caught:
                read_options({name: value})
            assert len(str(caught.value)) < 4000
