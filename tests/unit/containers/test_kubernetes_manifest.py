"""What a cluster is asked for, against files that people can read: tests/unit/containers/golden.

``python -m tests.unit.containers.test_kubernetes_manifest`` writes them anew; the diff is then to be read.
"""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from containers.kubernetes.manifest import grace_seconds, job_manifest, secret_reference
from containers.kubernetes.merging import merged
from containers.kubernetes.options import KubernetesOptions
from containers.secrets import Secret
from containers.spec import LABEL_ATTEMPT, LABEL_EXECUTION, LABEL_JOB, LABEL_OWNER, ContainerSpec, PullPolicy
from containers.volumes import Toleration, Volume, VolumeKind
from scheduler_project.kernel.errors import InvalidValue

GOLDEN = Path(__file__).with_name("golden")
NAME = "punctual-018e7c2f3a5b7d008000000000000001-1"
LABELS = {
    LABEL_EXECUTION: "018e7c2f-3a5b-7d00-8000-000000000001",
    LABEL_ATTEMPT: "1",
    LABEL_JOB: "daily sales, all of them",
    LABEL_OWNER: "sales",
}
PLAIN = KubernetesOptions()
TEAMS = KubernetesOptions(team_namespaces={"sales": "sales-runs"}, run_as_non_root=True, keep_s=600)
LEAST = ContainerSpec(name=NAME, image="busybox:stable")
ALL = ContainerSpec(
    name=NAME,
    image="registry.example.org/team/etl:3",
    argv=("python", "-m", "etl", "--cost", "$5", "$(HOME)"),
    env={"PARAM_DAY": "2026-12-24", "PRICE": "$(PARAM_DAY) costs $$"},
    working_dir="/srv/etl",
    labels=LABELS,
    memory_bytes=2 * 1024**3,
    memory_request_bytes=512 * 1024**2,
    cpus=2.0,
    cpus_request=0.25,
    ephemeral_bytes=10 * 1024**3,
    ephemeral_request_bytes=1024**3,
    gpus=1,
    user="1000:2000",
    read_only_root=False,
    network="none",
    timeout_s=3600,
    start_timeout_s=300,
    grace_s=2.5,
    secrets=(
        Secret("PGPASSWORD", "sales/warehouse", "never seen here", in_runtime=True),
        Secret("TOKEN", "token", "never seen here", in_runtime=True),
    ),
    volumes=(
        Volume(kind=VolumeKind.CLAIM, name="sales-data", target="/data"),
        Volume(kind=VolumeKind.CONFIG_MAP, name="settings", target="/etc/etl"),
        Volume(kind=VolumeKind.SECRET, name="certificates", target="/etc/certs"),
        Volume(kind=VolumeKind.SOURCE, name="/srv/shared", target="/shared"),
        Volume(kind=VolumeKind.SCRATCH, target="/work", read_only=False, size_bytes=1024**3),
    ),
    pull_policy=PullPolicy.ALWAYS,
    pull_secret="registry",
    node_selector={"disk": "ssd"},
    tolerations=(
        Toleration(key="gpu", operator="Exists", effect="NoSchedule"),
        Toleration(key="node.kubernetes.io/unreachable", operator="Exists", effect="NoExecute", seconds=30),
    ),
    service_account="etl",
)
TEMPLATE = ContainerSpec(
    name=NAME,
    image="busybox:stable",
    argv=("sh", "-c", "true"),
    labels=LABELS,
    network="host",
    pod_template={
        "metadata": {
            "annotations": {"sidecar.example.org/inject": "false"},
            "labels": {"cost-centre": "7", "punctual.managed": "false"},
        },
        "spec": {
            "priorityClassName": "batch",
            "restartPolicy": "Always",
            "enableServiceLinks": None,
            "containers": [
                {"env": [{"name": "EXTRA", "value": "1"}], "securityContext": {"runAsUser": 7}},
                {"name": "sidecar", "image": "proxy:1"},
            ],
            "volumes": [{"name": "tmp", "emptyDir": {"medium": "Memory"}}],
        },
    },
)
CASES = {
    "least": (LEAST, PLAIN),
    "all": (ALL, PLAIN),
    "team": (ALL, TEAMS),
    "template": (TEMPLATE, PLAIN),
}


class InFull(yaml.SafeDumper):
    """Without anchors for what is there twice."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def as_yaml(case: str) -> str:
    manifest = job_manifest(*CASES[case])
    return str(yaml.dump(manifest, Dumper=InFull, sort_keys=False, allow_unicode=True))


@pytest.mark.parametrize("case", CASES)
def test_the_manifest_is_the_golden_one(case: str) -> None:
    assert as_yaml(case) == (GOLDEN / f"{case}.yaml").read_text()


def test_there_is_a_case_for_each_golden_file() -> None:
    assert {path.stem for path in GOLDEN.glob("*.yaml")} == set(CASES)


def test_a_secret_goes_before_a_variable_of_its_name_wherever_it_is_kept() -> None:
    kept = Secret("A", "sales/a", "x", in_runtime=True)
    elsewhere = Secret("B", "sales/b", "$y")
    spec = ContainerSpec(name=NAME, image="x", env={"A": "1", "B": "2", "C": "3"}, secrets=(kept, elsewhere))
    pod = job_manifest(spec, PLAIN)["spec"]["template"]["spec"]
    assert pod["containers"][0]["env"] == [
        {"name": "C", "value": "3"},
        {"name": "A", "valueFrom": {"secretKeyRef": {"name": "sales", "key": "a"}}},
        {"name": "B", "value": "$$y"},
    ]


def test_a_volume_at_tmp_is_there_in_the_place_of_the_usual_one() -> None:
    own = Volume(kind=VolumeKind.SCRATCH, target="/tmp", read_only=False, size_bytes=1024**3)
    pod = job_manifest(ContainerSpec(name=NAME, image="x", volumes=(own,)), PLAIN)["spec"]["template"]["spec"]
    (mount,) = pod["containers"][0]["volumeMounts"]
    assert (mount["mountPath"], mount["readOnly"]) == ("/tmp", False)
    assert pod["volumes"] == [{"name": mount["name"], "emptyDir": {"sizeLimit": str(1024**3)}}]


def test_tolerations_of_a_template_take_the_place_of_the_others_as_in_a_strategic_merge_patch() -> None:
    whole = {"tolerations": [{"key": "gpu", "operator": "Exists"}], "hostAliases": [{"ip": "10.0.0.1"}]}
    given = {
        "tolerations": [{"key": "a", "effect": "NoExecute"}, {"key": "a", "effect": "NoSchedule"}],
        "hostAliases": [{"ip": "10.0.0.2"}],
    }
    assert merged(whole, given) == {
        "tolerations": given["tolerations"],
        "hostAliases": [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}],
    }


@pytest.mark.parametrize("case", CASES)
def test_no_manifest_holds_a_secret_of_the_cluster(case: str) -> None:
    assert "never seen" not in as_yaml(case)


def test_a_user_by_name_is_refused() -> None:
    with pytest.raises(InvalidValue, match=r"'etl'.*numbers only.*1000:1000") as caught:
        job_manifest(ContainerSpec(name=NAME, image="x", user="etl"), PLAIN)
    assert caught.value.field == "user"


@pytest.mark.parametrize(
    ("name", "reference"),
    [
        ("sales/db", ("sales", "db")),
        ("token", ("token", "value")),
        ("a/b/c", None),
        ("Sales/db", None),
        ("a_b/db", None),
    ],
)
def test_a_secret_has_a_name_and_a_key(name: str, reference: tuple[str, str] | None) -> None:
    assert secret_reference(name) == reference


@pytest.mark.parametrize(("given", "whole"), [(0, 1), (0.2, 1), (1, 1), (2.5, 3), (30, 30)])
def test_a_grace_is_whole_seconds_and_never_none(given: float, whole: int) -> None:
    assert grace_seconds(given) == whole


if __name__ == "__main__":
    for name in CASES:
        (GOLDEN / f"{name}.yaml").write_text(as_yaml(name))
