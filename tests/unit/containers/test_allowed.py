from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from containers.allowed import DANGEROUS, SAFE_POD_FIELDS, Allowed, check
from containers.options import read_options
from scheduler_project.kernel.errors import InvalidFields

TEAM = "data-engineering"


def refused(
    said, allowed: Allowed | None = None, *, image: str = "", team: str = TEAM
) -> dict[str, list[str]]:
    try:
        check(image, read_options(said), allowed or Allowed(), team)
    except InvalidFields as error:
        return error.errors
    return {}


def volume(kind: str, name: str) -> dict[str, object]:
    return {"volumes": [{kind: name, "target": "/x"}]}


def pod(**spec: object) -> dict[str, object]:
    return {"podTemplate": {"spec": spec}}


def test_what_is_harmless_needs_no_leave():
    harmless = {
        "secretEnv": {"PGPASSWORD": "data-engineering/warehouse"},
        "resources": {"cpu": {"limit": 64}, "memory": {"limit": "1Ti"}, "pids": 4096},
        "user": "1000",
        "network": "none",
        "readOnlyRoot": False,
        "volumes": [{"scratch": "1Gi", "target": "/work"}],
        "nodeSelector": {"a": "b"},
        "tolerations": [{"operator": "Exists"}],
        "podTemplate": {
            "metadata": {"labels": {"a.b/c": "d"}},
            "spec": {"affinity": {"x": [1, {"y": 2}]}},
        },
    }
    assert refused(harmless, image="anything/at:all") == {}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("container.secretEnv.A", {"secretEnv": {"A": "other-team/warehouse"}}),
        ("container.volumes.0.source", volume("source", "/var/run/docker.sock")),
        ("container.volumes.0.claim", volume("claim", "models")),
        ("container.volumes.0.secret", volume("secret", "tls")),
        ("container.network", {"network": "host"}),
        ("container.network", {"network": "warehouse"}),
        ("container.serviceAccount", {"serviceAccount": "admin"}),
        ("container.pullSecret", {"pullSecret": "registry"}),
        ("container.resources.gpu", {"resources": {"gpu": 1}}),
        ("container.resources.pids", {"resources": {"pids": 5000}}),
        ("container.podTemplate.spec.hostNetwork", pod(hostNetwork=True)),
        ("container.podTemplate.spec.volumes.hostPath.path", pod(volumes=[{"hostPath": {"path": "/"}}])),
        ("container.podTemplate.spec.serviceAccountName", pod(serviceAccountName="admin")),
        (
            "container.podTemplate.spec.containers.securityContext.privileged",
            pod(containers=[{"name": "run"}, {"securityContext": {"privileged": True}}]),
        ),
        (
            "container.podTemplate.metadata.annotations.iam.amazonaws.com/role",
            {"podTemplate": {"metadata": {"annotations": {"iam.amazonaws.com/role": "admin"}}}},
        ),
        ("container.podTemplate.spec.securityContext", pod(securityContext=None)),
        ("container.podTemplate.spec.containers.image", pod(containers=[{"image": "evil"}])),
    ],
)
def test_everything_that_reaches_further_is_refused_unless_a_setting_allows_it(path, said):
    errors = refused(said)
    assert list(errors) == [path]
    assert "PUNCTUAL_ALLOW_" in errors[path][0]


def test_lists_allow_what_they_name():
    allowed = Allowed(
        images=("registry.example.org/*", "python:3.*"),
        volumes=("/data/{team}/*", "claim:{team}-*"),
        networks=("warehouse", "host"),
        users=("1000", "1000:*"),
        service_accounts=("{team}",),
        gpus=2,
        cpus=4,
        memory_bytes=1 << 30,
    )
    assert refused(volume("source", "/data/data-engineering/raw"), allowed) == {}
    assert refused(volume("source", "/data/other/raw"), allowed)
    assert refused(volume("claim", "data-engineering-models"), allowed) == {}
    assert refused({"network": "host"}, allowed) == {}
    assert refused({"user": "1000:1000"}, allowed) == {}
    assert refused({"user": "0"}, allowed)
    assert refused({"serviceAccount": TEAM, "resources": {"gpu": 2, "cpu": {"limit": 4}}}, allowed) == {}
    assert list(refused({}, allowed, image="registry.example.org.evil.example/x")) == ["image"]
    assert refused({}, allowed, image="registry.example.org/team/x:1") == refused({}, allowed) == {}
    memory = refused({"resources": {"memory": {"limit": "2Gi", "request": "1537Mi"}}}, allowed)
    assert memory["container.resources.memory.limit"] == [
        "2Gi is more than is allowed here, 1Gi (PUNCTUAL_ALLOW_MEMORY_BYTES)."
    ]
    assert set(memory) == {"container.resources.memory.limit", "container.resources.memory.request"}


def test_no_star_stands_for_the_network_of_the_host_or_for_what_breaks_out_of_a_pod():
    everything = Allowed(networks=("*",), pod_template=("*",))
    assert refused({"network": "host"}, everything)
    assert refused({"network": "anything"}, everything) == {}
    assert refused(pod(priorityClassName="high"), everything) == {}
    for breaking_out in (
        pod(hostPID=True),
        pod(volumes=[{"hostPath": {"path": "/"}}]),
        pod(containers=[{"securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]),
        {
            "podTemplate": {
                "metadata": {"annotations": {"container.apparmor.security.beta.kubernetes.io/run": "x"}}
            }
        },
    ):
        assert refused(breaking_out, everything)
    for taken_away in (
        pod(securityContext=None),
        pod(containers=[{"securityContext": None}]),
        pod(containers=None),
    ):
        assert refused(taken_away, everything)
    named = Allowed(pod_template=(*SAFE_POD_FIELDS, "spec.hostPID", "metadata.annotations.x.example/*"))
    assert refused(pod(hostPID=True), named) == {}
    assert refused({"podTemplate": {"metadata": {"annotations": {"x.example/a": "b"}}}}, named) == {}


names = st.sampled_from(["spec", "containers", "volumes", "securityContext", "template", "x.y", "*"])


@given(
    st.lists(names, max_size=4), st.sampled_from(sorted(DANGEROUS)), st.lists(names, max_size=3), st.data()
)
def test_whatever_a_dangerous_field_is_wrapped_in_no_pattern_without_its_name_allows_it(
    above: list[str], dangerous: str, below: list[str], data: st.DataObject
) -> None:
    value: object = data.draw(st.sampled_from([True, {}, [], "x"]))
    for name in reversed([*above, dangerous, *below]):
        value = data.draw(st.sampled_from([{name: value}, [{"other": 1}, {name: value}]]))
    everything = Allowed(pod_template=("*", "spec*", "spec.*", "?*", *SAFE_POD_FIELDS))
    assert refused({"podTemplate": {"spec": value}}, everything)


@pytest.mark.parametrize(
    "team",
    [
        *("*", "../other", "a/b", "other", "data_engineering__x", "", "тим", "?" * 16),
        *("Data-Engineering", "data_engineering", "data.engineering", "data engineering"),
    ],
)
def test_a_team_reaches_nothing_of_another_by_its_name(team):
    allowed = Allowed(volumes=("/data/{team}/*",), pull_secrets=("{team}",))
    for secret in ("data-engineering/x/y", "DATA-ENGINEERING/x"):
        assert refused({"secretEnv": {"A": secret}}, allowed, team=team)
    assert refused(volume("source", "/data/data-engineering/raw"), allowed, team=team)
    assert refused({"pullSecret": "data-engineering"}, allowed, team=team)


@pytest.mark.parametrize(
    ("team", "path", "said"),
    [
        ("data engineering", "container.secretEnv.A", {"secretEnv": {"A": "data-engineering/x"}}),
        ("a--b", "container.secretEnv.A", {"secretEnv": {"A": "a-b/x"}}),
        ("a/b", "container.volumes.0.source", volume("source", "/data/a/b/c")),
    ],
)
def test_a_team_whose_name_cannot_be_taken_letter_by_letter_is_told_so(team, path, said):
    [complaint] = refused(said, Allowed(volumes=("/data/{team}/*",)), team=team)[path]
    assert "Allowed: " in complaint and "{team}" in complaint
    assert "This team's name cannot stand for {team}: rename the team" in complaint


def test_patterns_and_names_of_secrets_are_compared_letter_by_letter():
    allowed = Allowed(secrets=("Shared/db-*", "{team}/*"))
    assert refused({"secretEnv": {"A": "Shared/db-1", "B": "data_eng/x"}}, allowed, team="data_eng") == {}
    for other in ("shared/db-1", "Shared/db_1", "data-eng/x", "Data_eng/x"):
        assert refused({"secretEnv": {"A": other}}, allowed, team="data_eng")
