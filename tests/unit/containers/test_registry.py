from __future__ import annotations

import pytest

from containers.docker import DockerRuntime
from containers.kubernetes.runtime import KubernetesRuntime
from containers.process import ProcessRuntime
from containers.registry import RuntimeOptions, runtime_from
from scheduler_project.kernel.errors import InvalidValue


@pytest.mark.parametrize(
    ("name", "kind"),
    [("docker", DockerRuntime), ("kubernetes", KubernetesRuntime), ("process", ProcessRuntime)],
)
def test_a_runtime_by_its_name_contacts_nothing_yet(name, kind, tmp_path):
    runtime = runtime_from(name, RuntimeOptions(home=tmp_path))
    assert isinstance(runtime, kind)
    assert runtime.name == name
    runtime.close()
    assert list(tmp_path.iterdir()) == []


def test_any_other_name_is_refused_with_what_is_allowed(tmp_path):
    with pytest.raises(
        InvalidValue, match="'podman' is not a runtime: use one of docker, kubernetes, process"
    ) as caught:
        runtime_from("podman", RuntimeOptions(home=tmp_path))
    assert caught.value.field == "runtime"
