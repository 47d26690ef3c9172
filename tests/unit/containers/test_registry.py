from __future__ import annotations

import pytest

from containers.docker import DockerRuntime
from containers.process import ProcessRuntime
from containers.registry import RuntimeOptions, runtime_from
from scheduler_project.kernel.errors import InvalidValue


@pytest.mark.parametrize(("name", "kind"), [("docker", DockerRuntime), ("process", ProcessRuntime)])
def test_a_runtime_by_its_name_contacts_nothing_yet(name, kind, tmp_path):
    runtime = runtime_from(name, RuntimeOptions(home=tmp_path))
    assert isinstance(runtime, kind)
    assert runtime.name == name
    runtime.close()
    assert list(tmp_path.iterdir()) == []


def test_kubernetes_is_said_to_be_not_built_yet(tmp_path):
    with pytest.raises(InvalidValue, match="'kubernetes' is not built yet: use one of docker, process"):
        runtime_from("kubernetes", RuntimeOptions(home=tmp_path))


def test_any_other_name_is_refused_with_what_is_allowed(tmp_path):
    with pytest.raises(InvalidValue, match="'podman' is not a runtime: use one of docker, process") as caught:
        runtime_from("podman", RuntimeOptions(home=tmp_path))
    assert caught.value.field == "runtime"
