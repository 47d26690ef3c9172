"""The whole system with runs as Jobs of a cluster (the stand-in of tests/kubernetes_api)."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.e2e.test_runs import body, log_of
from tests.faults.test_worker import assert_ran_once, begin_long_run
from tests.kubernetes_api import StandInCluster
from tests.kubernetes_api.cluster import NAMESPACE
from tests.system import System, running_system

IMAGE = "busybox:stable"


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[StandInCluster]:
    made = StandInCluster(tmp_path_factory.mktemp("cluster"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def system(tmp_path_factory: pytest.TempPathFactory, cluster: StandInCluster) -> Iterator[System]:
    options = {
        "PUNCTUAL_RUNTIME": "kubernetes",
        "PUNCTUAL_IMAGE_SCRIPT": IMAGE,
        "PUNCTUAL_RUN_LEASE": "3s",
        "PUNCTUAL_GRACE": "1s",
        "PUNCTUAL_KUBERNETES_IMAGE_PULL": "1s",
        "KUBECONFIG": str(cluster.kubeconfig()),
    }
    with running_system(tmp_path_factory.mktemp("system"), **options) as found:
        found.start_all("beat recorder auditor")
        found.wait_until_ready()
        yield found


def test_a_worker_that_is_killed_leaves_its_runs_to_the_next(system: System, cluster: StandInCluster) -> None:
    first = system.start("worker")
    job, run = begin_long_run(system, first, "survivor", 8)
    first.kill()
    second = system.start("worker")
    ended = assert_ran_once(system, job, 8)
    assert ended["worker"].startswith(second.name)
    starts = [event["worker"] for event in system.events(run["id"]) if event["type"] == "JOB_STARTED"]
    assert [worker.split("@")[0] for worker in starts] == [first.name, second.name]
    name = f"punctual-{run['id'].hex}-1"
    system.wait_for(lambda: cluster.store.find("jobs", NAMESPACE, name) is None, "its Job is removed")


def test_a_run_has_its_log_its_secret_and_its_outcome(system: System, cluster: StandInCluster) -> None:
    cluster.add_secret("tests", word="hush-hush-hush")
    (job,) = system.create_jobs(
        body(
            "greets",
            'echo "hello from $PUNCTUAL_JOB: $WORD"; test "$WORD" = hush-hush-hush && exit 3',
            "now",
            container={"secretEnv": {"WORD": "tests/word"}, "resources": {"memory": {"limit": "64Mi"}}},
        )
    )
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["reason"], run["exit_code"]) == ("Completed Abnormally", "failed", 3)
    assert log_of(system, run, 1).startswith("hello from greets: ")
    assert "hush-hush" not in log_of(system, run, 1)


def test_an_image_that_cannot_be_had_is_said(system: System, cluster: StandInCluster) -> None:
    cluster.faults.absent_images["example.org/none:1"] = "manifest unknown"
    (job,) = system.create_jobs(body("no image", "true", "now", type="Container", image="example.org/none:1"))
    (run,) = system.wait_all_terminal([job], 1)
    assert (run["state"], run["reason"]) == ("Completed Abnormally", "image_pull_failed")
    assert "manifest unknown" in run["message"]


def test_a_run_that_is_preempted_starts_again_though_it_has_no_retries(
    system: System, cluster: StandInCluster
) -> None:
    (job,) = system.create_jobs(
        body("preempted", 'echo try; test "$PUNCTUAL_ATTEMPT" = 2 || sleep 600', "now")
    )
    system.wait_for(lambda: system.executions(job), "it is there")
    run = system.executions(job)[0]
    system.wait_for(lambda: is_running(cluster, f"punctual-{run['id'].hex}-1"), "its pod runs")
    cluster.preempt(f"punctual-{run['id'].hex}-1")
    (ended,) = system.wait_all_terminal([job], 1)
    assert (ended["state"], ended["attempt"], ended["losses"]) == ("Completed Normally", 2, 1)


def is_running(cluster: StandInCluster, name: str) -> bool:
    pod = cluster.pod(name)
    return pod is not None and pod["status"].get("phase") == "Running"
