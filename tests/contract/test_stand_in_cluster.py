"""The stand-in for a cluster, as the official client's own models and watches see it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from datetime import timedelta
from typing import Any

import pytest
from kubernetes import client, config, watch
from kubernetes.client import ApiException

from containers.kubernetes.manifest import job_manifest
from containers.kubernetes.options import KubernetesOptions
from containers.spec import ContainerSpec
from tests.contract.bench import eventually
from tests.kubernetes_api import StandInCluster
from tests.kubernetes_api.cluster import NAMESPACE
from tests.kubernetes_api.expansion import expanded
from tests.kubernetes_api.selectors import Selector


@pytest.fixture
def api(cluster: StandInCluster) -> Iterator[client.ApiClient]:
    made = config.new_client_from_config(str(cluster.kubeconfig("token-of-the-admin")), persist_config=False)
    yield made
    jobs = client.BatchV1Api(made)
    for job in jobs.list_namespaced_job(NAMESPACE).items:
        with suppress(ApiException):
            jobs.delete_namespaced_job(job.metadata.name, NAMESPACE, propagation_policy="Background")
    cluster.wait_until_empty()
    made.rest_client.pool_manager.clear()
    made.close()


def manifest(name: str, *argv: str) -> dict[str, Any]:
    spec = ContainerSpec(name=name, argv=argv, image="busybox:stable", grace_s=1)
    return job_manifest(spec, KubernetesOptions(namespace=NAMESPACE))


def test_a_job_goes_through_its_states(api):
    jobs, pods = client.BatchV1Api(api), client.CoreV1Api(api)
    jobs.create_namespaced_job(NAMESPACE, manifest("states", "sh", "-c", "echo said; exit 3"))
    with pytest.raises(ApiException) as caught:
        jobs.create_namespaced_job(NAMESPACE, manifest("states", "true"))
    assert (caught.value.status, "AlreadyExists" in caught.value.body) == (409, True)
    eventually(lambda: jobs.read_namespaced_job("states", NAMESPACE).status.conditions, "it ends")
    eventually(
        lambda: len(jobs.read_namespaced_job("states", NAMESPACE).status.conditions) == 2, "it has failed"
    )
    job = jobs.read_namespaced_job("states", NAMESPACE)
    assert [(one.type, one.reason) for one in job.status.conditions] == [
        ("FailureTarget", "BackoffLimitExceeded"),
        ("Failed", "BackoffLimitExceeded"),
    ]
    (pod,) = pods.list_namespaced_pod(NAMESPACE, label_selector="job-name=states").items
    (status,) = pod.status.container_statuses
    assert (pod.status.phase, status.state.terminated.exit_code, status.state.terminated.reason) == (
        "Failed",
        3,
        "Error",
    )
    assert log_of(pods, pod) == b"said\n"
    assert log_of(pods, pod, timestamps=True).endswith(b"Z said\n")


def log_of(pods: client.CoreV1Api, pod: client.V1Pod, **asked: Any) -> bytes:
    """As it is: the client makes the repr of the bytes of it."""
    answer = pods.read_namespaced_pod_log(pod.metadata.name, NAMESPACE, _preload_content=False, **asked)
    return bytes(answer.data)


def test_a_watch_tells_what_happens_after_the_version_of_a_list(api, cluster):
    jobs = client.BatchV1Api(api)
    before = jobs.list_namespaced_job(NAMESPACE).metadata.resource_version
    jobs.create_namespaced_job(NAMESPACE, manifest("watched", "true"))
    seen = []
    stream = watch.Watch().stream(
        jobs.list_namespaced_job,
        NAMESPACE,
        resource_version=before,
        label_selector="punctual.container=watched",
        timeout_seconds=10,
    )
    for event in stream:
        seen.append(event["type"])
        if event["object"].status.succeeded and event["type"] == "MODIFIED":
            jobs.delete_namespaced_job("watched", NAMESPACE, propagation_policy="Background")
        if event["type"] == "DELETED":
            break
    assert (seen[0], seen[-1], set(seen[1:-1])) == ("ADDED", "DELETED", {"MODIFIED"})
    cluster.store.compact()
    with pytest.raises(ApiException) as caught:
        next(iter(watch.Watch().stream(jobs.list_namespaced_job, NAMESPACE, resource_version=before)))
    assert caught.value.status == 410


def test_a_list_in_pages_is_whole_and_its_token_grows_old(api, cluster):
    jobs = client.BatchV1Api(api)
    for number in range(5):
        jobs.create_namespaced_job(NAMESPACE, manifest(f"page-{number}", "true"))
    names, token = [], None
    while token != "":
        page = jobs.list_namespaced_job(NAMESPACE, limit=2, _continue=token or "")
        names += [job.metadata.name for job in page.items]
        token = page.metadata._continue or ""
    assert names == [f"page-{number}" for number in range(5)]
    token = jobs.list_namespaced_job(NAMESPACE, limit=2).metadata._continue
    cluster.store.compact()
    with pytest.raises(ApiException) as caught:
        jobs.list_namespaced_job(NAMESPACE, limit=2, _continue=token)
    assert caught.value.status == 410


def test_a_foreground_deletion_ends_the_pod_first_and_a_pod_has_its_grace(api):
    jobs, pods = client.BatchV1Api(api), client.CoreV1Api(api)
    script = "trap 'sleep 0.5; exit 0' TERM; echo up; while :; do sleep 0.05; done"
    jobs.create_namespaced_job(NAMESPACE, manifest("slow", "sh", "-c", script))
    found = lambda: pods.list_namespaced_pod(NAMESPACE, label_selector="job-name=slow").items  # noqa: E731
    eventually(lambda: found() and found()[0].status.phase == "Running", "it runs")
    jobs.delete_namespaced_job("slow", NAMESPACE, propagation_policy="Foreground")
    job = jobs.read_namespaced_job("slow", NAMESPACE)
    assert "foregroundDeletion" in job.metadata.finalizers
    eventually(lambda: not found() or found()[0].metadata.deletion_timestamp, "its pod is to be ended")
    for pod in found():
        assert pod.metadata.deletion_grace_period_seconds <= 1
        assert pod.metadata.deletion_timestamp - pod.metadata.creation_timestamp < timedelta(seconds=20)
    eventually(lambda: not found(), "its pod goes")
    eventually(
        lambda: "slow" not in [job.metadata.name for job in jobs.list_namespaced_job(NAMESPACE).items],
        "it goes",
    )


def test_what_the_api_refuses_it_refuses(api):
    jobs, pods = client.BatchV1Api(api), client.CoreV1Api(api)
    body = manifest("refused", "true")
    body["spec"]["template"]["spec"]["restartPolicy"] = "Always"
    twice = manifest("refused", "true")
    mounts = twice["spec"]["template"]["spec"]["containers"][0]["volumeMounts"]
    mounts.append(mounts[0])
    attempts = [
        (422, lambda: jobs.create_namespaced_job(NAMESPACE, body)),
        (422, lambda: jobs.create_namespaced_job(NAMESPACE, twice)),
        (404, lambda: jobs.read_namespaced_job("none", NAMESPACE)),
        (404, lambda: pods.read_namespaced_pod_log("none", NAMESPACE)),
    ]
    for status, attempt in attempts:
        with pytest.raises(ApiException) as caught:
            attempt()
        assert caught.value.status == status
    jobs.create_namespaced_job(NAMESPACE, manifest("fixed", "sleep", "1"))
    with pytest.raises(ApiException) as caught:
        jobs.patch_namespaced_job("fixed", NAMESPACE, {"spec": {"template": {}}})
    assert (caught.value.status, "immutable" in caught.value.body) == (422, True)


@pytest.mark.parametrize(
    ("selector", "matches"),
    [
        ("a=1", True),
        ("a==1,b!=2", True),
        ("a!=1", False),
        ("c", False),
        ("!c", True),
        ("a in (1, 2),b", True),
    ],
)
def test_selectors(selector, matches):
    assert Selector(selector).matches({"metadata": {"labels": {"a": "1", "b": "3"}}}) is matches


@pytest.mark.parametrize(
    ("text", "whole"),
    [("$(A)", "1"), ("$$(A)", "$(A)"), ("$(B)", "$(B)"), ("$A $$", "$A $"), ("$$$(A)", "$1")],
)
def test_references_are_expanded_as_a_kubelet_does(text, whole):
    assert expanded(text, {"A": "1"}) == whole
