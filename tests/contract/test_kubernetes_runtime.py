"""The kubernetes runtime where things go wrong: each trouble of a pod, of a watch, of the API server."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml

from containers.kubernetes import container, output, refusals
from containers.kubernetes.options import KubernetesOptions, Patience
from containers.kubernetes.rights import BY_NAME, NEEDED
from containers.kubernetes.runtime import KubernetesRuntime
from containers.outcome import LOSSES, Outcome, Reason
from containers.runtime import RuntimeUnavailable
from containers.secrets import Secret, SecretsUnavailable
from containers.spec import LABEL_OWNER
from containers.supervise import Detached, NotLaunched, Stop
from scheduler_project.kernel.clock import monotonic
from tests.contract.bench import Bench, Run, eventually
from tests.contract.conftest import KUBERNETES_IMAGE
from tests.kubernetes_api import StandInCluster, clock
from tests.kubernetes_api.cluster import NAMESPACE, WORKER

FOREVER = "trap 'exit 143' TERM; echo ready; while :; do sleep 0.05; done"
COUNTING = "i=1; while [ $i -le 40 ]; do echo line $i; i=$((i+1)); sleep 0.02; done; exit 7"
COUNTED = b"".join(b"line %d\n" % number for number in range(1, 41))
SHORT = Patience(unschedulable=0.5, image_pull=0.9, configuration=0.7, node_lost=0.5)


@pytest.fixture
def bench(cluster: StandInCluster, tmp_path: Path) -> Iterator[Bench]:
    made = Bench(
        "kubernetes",
        KUBERNETES_IMAGE,
        tmp_path,
        cluster=cluster,
        kubernetes=KubernetesOptions(patience=SHORT, watch_s=5, look_s=1.0),
    )
    yield made
    cluster.faults.heal()
    made.close()


@contextmanager
def watched(run: Run, wanted_stop: Callable[[], Stop | None] = lambda: None) -> Iterator[Future[Outcome]]:
    """``run``, taken to its end by another thread."""
    with ThreadPoolExecutor(1) as pool:
        yield pool.submit(run.to_end, wanted_stop)


@contextmanager
def running(run: Run) -> Iterator[Future[Outcome]]:
    with watched(run) as future:
        eventually(lambda: run.says(b"ready") or future.done(), "it runs")
        yield future


class TestStarting:
    def test_one_that_no_node_takes_is_given_up_with_what_its_cluster_says(self, bench, cluster):
        cluster.faults.unschedulable = "3 Insufficient nvidia.com/gpu"
        run = bench.script("true")
        outcome = run.to_end()
        assert outcome.reason is Reason.UNSCHEDULABLE
        assert "3 Insufficient nvidia.com/gpu" in outcome.message
        assert b"3 Insufficient nvidia.com/gpu" in run.log
        assert_nothing_left(bench, cluster, run)

    @pytest.mark.parametrize(
        ("changes", "words"),
        [
            ({"cpus": 1000.0}, "Insufficient cpu"),
            ({"gpus": 1}, "Insufficient nvidia.com/gpu"),
            ({"node_selector": {"disk": "ssd"}}, "node affinity/selector"),
        ],
    )
    def test_room_and_labels_of_nodes_are_asked_for(self, bench, changes, words):
        outcome = bench.script("true", **changes).to_end()
        assert (outcome.reason, words in outcome.message) == (Reason.UNSCHEDULABLE, True), outcome

    def test_one_that_finds_its_node_in_time_runs(self, bench, cluster):
        cluster.faults.unschedulable = "full"
        run = bench.script("echo here")
        with watched(run) as future:
            eventually(lambda: cluster.pod(run.spec.name), "its pod is made")
            cluster.faults.unschedulable = ""
            assert future.result(20).reason is Reason.SUCCEEDED

    def test_an_image_that_cannot_be_pulled_is_waited_for_a_while_and_named(self, bench, cluster):
        cluster.faults.absent_images["registry.example.org/none:1"] = "manifest unknown"
        run = bench.script("true", image="registry.example.org/none:1")
        outcome = run.to_end()
        assert outcome.reason is Reason.IMAGE_PULL_FAILED
        assert "registry.example.org/none:1" in outcome.message
        assert run.log.count(b"registry.example.org/none:1") == 1  # told once, though it is tried again
        assert_nothing_left(bench, cluster, run)

    def test_an_image_that_comes_at_the_second_try_is_no_trouble(self, bench, cluster):
        cluster.faults.absent_images[KUBERNETES_IMAGE] = "connection reset"
        run = bench.script("echo here")
        with watched(run) as future:
            eventually(lambda: waits_for(cluster, run, "ErrImagePull"), "a pull fails")
            cluster.faults.absent_images.clear()
            assert future.result(20).reason is Reason.SUCCEEDED

    def test_the_name_of_no_image_is_not_waited_for(self, bench):
        slow = replace(bench.kubernetes, patience=Patience())
        bench.runtime = KubernetesRuntime(slow)
        outcome = bench.script("true", image="NOT AN IMAGE").to_end()
        assert outcome.reason is Reason.IMAGE_PULL_FAILED
        assert "InvalidImageName" in outcome.message

    def test_a_missing_secret_is_named_and_its_value_reaches_the_run(self, bench, cluster):
        secret = Secret("TOKEN", "team/token", "of no use here", in_runtime=True)
        run = bench.script('test "$TOKEN" = s3cret', secrets=(secret,))
        outcome = run.to_end()
        assert outcome.reason is Reason.SECRET_MISSING
        assert 'secret "team" not found' in outcome.message
        cluster.add_secret("team", token="s3cret")
        assert bench.runtime.secret_source().read("team/token") == "s3cret"
        assert bench.runtime.secret_source().read("team/other") is None
        assert bench.runtime.secret_source().read("other/token") is None
        assert bench.script('test "$TOKEN" = s3cret', secrets=(secret,)).to_end().reason is Reason.SUCCEEDED

    def test_the_whole_start_has_its_time(self, bench, cluster):
        cluster.faults.unschedulable = "full"
        bench.runtime = KubernetesRuntime(replace(bench.kubernetes, patience=Patience()))
        run = bench.script("true", start_timeout_s=0.6)
        outcome = run.to_end()
        assert (outcome.reason, "within 0.6 s" in outcome.message) == (Reason.UNSCHEDULABLE, True)
        assert_nothing_left(bench, cluster, run)

    def test_a_cancel_while_it_waits_for_a_node_leaves_nothing(self, bench, cluster):
        cluster.faults.unschedulable = "full"
        bench.runtime = KubernetesRuntime(replace(bench.kubernetes, patience=Patience()))
        run = bench.script("true")
        outcome = run.to_end(lambda: Stop.CANCEL if cluster.pod(run.spec.name) else None)
        assert (outcome.reason, outcome.exit_code) == (Reason.CANCELLED, None)
        assert_nothing_left(bench, cluster, run)

    def test_a_worker_that_goes_leaves_a_waiting_one_to_the_next(self, bench, cluster):
        cluster.faults.unschedulable = "full"
        bench.runtime = KubernetesRuntime(replace(bench.kubernetes, patience=Patience()))
        run = bench.script("echo here")
        with pytest.raises(NotLaunched):
            run.to_end(lambda: Stop.DETACH if cluster.pod(run.spec.name) else None)
        made = cluster.pod(run.spec.name)["metadata"]["uid"]
        threading.Timer(0.3, cluster.faults.heal).start()
        assert run.to_end(attach_only=True).reason is Reason.SUCCEEDED
        assert (run.log.endswith(b"here\n"), cluster.pod(run.spec.name)["metadata"]["uid"]) == (True, made)

    def test_what_the_cluster_refuses_is_final_and_in_its_words(self, bench):
        outcome = bench.script("true", pod_template={"spec": {"containers": [{"name": "b"}]}}).to_end()
        assert outcome.reason is Reason.START_FAILED
        assert "image: Required value" in outcome.message


class TestRefusedPods:
    """The Job is taken, and its pod is not: an event tells why."""

    @pytest.fixture(autouse=True)
    def soon(self, monkeypatch):
        monkeypatch.setattr(refusals, "ASK_AFTER_S", 0.2)

    def test_a_quota_is_waited_for_and_named(self, bench, cluster):
        cluster.admission.most_pods[NAMESPACE] = 0
        run = bench.script("echo here")
        with watched(run) as future:
            time.sleep(1.0)  # longer than any trouble may last here
            assert not future.done()
            cluster.admission.heal()
            assert future.result(20).reason is Reason.SUCCEEDED
        cluster.admission.most_pods[NAMESPACE] = 0
        run = bench.script("true", start_timeout_s=0.6)
        outcome = run.to_end()
        assert (outcome.reason, "exceeded quota: runs" in outcome.message) == (Reason.START_TIMED_OUT, True)
        assert_nothing_left(bench, cluster, run)

    def test_pod_security_is_final(self, bench, cluster):
        run = bench.script("true", network="host")
        outcome = run.to_end()
        assert outcome.reason is Reason.START_FAILED
        assert 'its pod: violates PodSecurity "baseline:latest": host namespaces' in outcome.message
        assert_nothing_left(bench, cluster, run)

    def test_a_service_account_may_come_a_moment_later(self, bench, cluster):
        run = bench.script("true", service_account="etl")
        outcome = run.to_end()
        assert outcome.reason is Reason.START_FAILED
        assert 'serviceaccount "etl" not found' in outcome.message
        run = bench.script("true", service_account="etl")
        threading.Timer(0.4, cluster.admission.accounts.add, ["etl"]).start()
        assert run.to_end().reason is Reason.SUCCEEDED


class TestEnding:
    """What ends a run from outside is no failure of its own."""

    @pytest.mark.parametrize(
        ("befall", "code", "reason", "words"),
        [
            (StandInCluster.evict, 0, Reason.EVICTED, "low on resource"),
            (StandInCluster.preempt, 0, Reason.PREEMPTED, "higher priority"),
            (StandInCluster.lose_node, 143, Reason.NODE_LOST, "its node node-1 does not answer"),
            (StandInCluster.delete_pod, 0, Reason.DELETED, "deleted its pod"),
            (StandInCluster.delete_job, 143, Reason.DELETED, "deleted"),
        ],
    )
    def test_a_loss_is_told_from_a_failure_and_from_a_success(
        self, bench, cluster, befall, code, reason, words
    ):
        run = bench.script(FOREVER.replace("143", str(code)), grace_s=1)
        with running(run) as future:
            befall(cluster, run.spec.name)
            outcome = future.result(30)
        assert outcome.reason is reason, outcome
        assert words in outcome.message
        assert reason in LOSSES
        assert run.says(b"ready\n")

    def test_more_disk_than_its_limit_is_its_own_fault(self, bench, cluster):
        run = bench.script(FOREVER)
        with running(run) as future:
            cluster.evict(run.spec.name, own_fault=True)
            outcome = future.result(20)
        assert (outcome.reason, outcome.reason in LOSSES) == (Reason.OUT_OF_DISK, False)
        assert "exceeds the total limit" in outcome.message

    def test_no_pod_is_made_anew_for_one_that_is_gone(self, bench, cluster):
        run = bench.script(FOREVER)
        with running(run) as future:
            first = cluster.pod(run.spec.name)["metadata"]["uid"]
            cluster.preempt(run.spec.name)
            future.result(20)
        time.sleep(0.5)
        left = cluster.pod(run.spec.name)
        assert left is None or left["metadata"]["uid"] == first

    def test_a_run_that_every_worker_has_left_ends_at_its_deadline(self, bench, cluster):
        run = bench.script(FOREVER, timeout_s=0.5)
        bench.runtime.launch(run.spec)
        # As the cluster counts it: the time for the start and a margin are part of the Job's deadline.
        edit_job(cluster, run, activeDeadlineSeconds=2)
        eventually(lambda: cluster.pod(run.spec.name) is None, "the cluster ends it")
        bench.runtime.close()
        bench.runtime = bench.another_runtime()
        outcome = run.to_end(attach_only=True)
        assert (outcome.reason, outcome.exit_code) == (Reason.TIMED_OUT, None)

    def test_an_ended_job_that_nobody_removes_goes_by_itself(self, bench, cluster):
        bench.runtime = KubernetesRuntime(replace(bench.kubernetes, keep_s=1))
        run = bench.script("exit 3")
        assert run.to_end().exit_code == 3
        eventually(lambda: cluster.pod(run.spec.name) is None, "it goes")
        assert run.spec.name not in bench.runtime.owned()

    def test_the_job_stays_until_it_is_forgotten_when_it_is_stopped(self, bench, cluster):
        run = bench.script(FOREVER, grace_s=1)
        bench.runtime.launch(run.spec).stop(1)
        eventually(lambda: cluster.pod(run.spec.name) is None, "its pod is gone")
        assert run.spec.name in bench.runtime.owned()
        bench.runtime.forget(run.spec.name)
        assert_nothing_left(bench, cluster, run)

    def test_a_stop_gives_the_whole_grace_though_the_controller_is_slow(self, bench, cluster, monkeypatch):
        monkeypatch.setattr(container, "REPORT_WITHIN_S", 0.0)
        run = bench.script(FOREVER.replace("exit 143", "sleep 1.4; echo tidy; exit 143"), grace_s=2)
        with running(run):
            held = bench.runtime.attach(run.spec.name)
            cluster.controllers.paused = True
            try:
                held.stop(2)
            finally:
                cluster.controllers.paused = False
        assert run.log.endswith(b"tidy\n")


class TestClocks:
    """A cluster whose clock is not the worker's."""

    @pytest.fixture(params=[-3600, 3600], ids=["behind", "ahead"], autouse=True)
    def cluster_clock(self, request, monkeypatch):
        monkeypatch.setattr(clock, "ahead", timedelta(seconds=request.param))

    def test_a_time_limit_is_neither_early_nor_late(self, bench):
        assert bench.script("sleep 2; exit 7", timeout_s=30).to_end().message == "exit code 7"
        begun = monotonic()
        assert bench.script(FOREVER, timeout_s=1, grace_s=1).to_end().reason is Reason.TIMED_OUT
        assert monotonic() - begun < 15

    def test_nor_where_a_run_is_taken_up(self, bench):
        run = bench.script("sleep 2; exit 7", timeout_s=30)
        bench.runtime.launch(run.spec)
        bench.runtime.close()
        bench.runtime = bench.another_runtime()
        outcome = run.to_end(attach_only=True)
        assert outcome.message == "exit code 7"
        assert outcome.finished_at - outcome.started_at < timedelta(seconds=15)
        run = bench.script(FOREVER, timeout_s=1, grace_s=1)
        bench.runtime.launch(run.spec)
        begun = monotonic()
        assert run.to_end(attach_only=True).reason is Reason.TIMED_OUT
        assert monotonic() - begun < 15


class TestWatching:
    def test_one_watch_tells_of_all_runs(self, bench, cluster):
        runs = [bench.script(f"sleep 4; exit {number}") for number in range(10)]
        with counted(cluster) as asked, ThreadPoolExecutor(10) as pool:
            outcomes = list(pool.map(lambda run: run.to_end(), runs))
        assert [outcome.exit_code for outcome in outcomes] == list(range(10))
        watches = [line for line in asked if "watch=true" in line]
        looks = [
            line for line in asked if line.startswith("GET") and "watch" not in line and "/log" not in line
        ]
        assert 2 <= len(watches) <= 4  # Jobs and pods, each once; again where one ended meanwhile
        assert (
            len(looks) <= 60
        )  # those until each has begun, by the second; not one for each look at each run

    def test_a_cut_watch_and_a_cut_log_go_on_where_they_were(self, bench, cluster):
        run = bench.script(COUNTING)
        with watched(run) as future:
            for number in (5, 15, 25):
                eventually(partial(run.says, b"line %d\n" % number), "it counts")
                cluster.faults.cut_streams()
            outcome = future.result(20)
        assert (outcome.reason, outcome.exit_code) == (Reason.FAILED, 7)
        assert run.log == COUNTED

    def test_versions_that_are_forgotten_make_it_list_anew(self, bench, cluster):
        run = bench.script("sleep 1; exit 7")
        with watched(run) as future:
            eventually(lambda: cluster.pod(run.spec.name), "its pod is made")
            cluster.store.compact()  # watches get 410
            outcome = future.result(20)
        assert outcome.exit_code == 7

    def test_what_ends_while_no_watch_can_be_had_is_found(self, bench, cluster):
        run = bench.script("sleep 0.5; exit 7")
        with watched(run) as future:
            eventually(lambda: cluster.pod(run.spec.name), "its pod is made")
            cluster.faults.fail("watch=true", 500, times=1000)
            cluster.faults.cut_streams()
            outcome = future.result(20)
        assert outcome.exit_code == 7

    @pytest.mark.parametrize("status", [429, 500, 503])
    def test_an_api_server_with_troubles_is_asked_again(self, bench, cluster, status):
        run = bench.script("sleep 0.3; exit 7")
        bench.runtime.launch(run.spec)
        cluster.faults.fail("GET /api", status, times=4)
        cluster.faults.cut_streams()
        assert run.to_end().exit_code == 7

    def test_trouble_at_the_creation_leaves_it_to_a_later_try(self, bench, cluster):
        run = bench.script("exit 7")
        cluster.faults.fail("POST /apis/batch", 429)
        with pytest.raises(RuntimeUnavailable, match="429"):
            run.to_end()
        assert run.to_end().exit_code == 7

    def test_slow_answers_are_waited_for_and_very_slow_ones_are_not(self, bench, cluster):
        cluster.faults.slow("/jobs", 0.3)
        assert bench.script("exit 7").to_end().exit_code == 7
        hasty = KubernetesRuntime(replace(bench.kubernetes, api_timeout_s=0.1))
        with pytest.raises(RuntimeUnavailable, match="no Kubernetes API server answers"):
            hasty.owned()
        hasty.close()

    def test_an_answer_that_is_lost_makes_no_second_run(self, bench, cluster):
        """A Job was made, and nobody heard of it: the next launch finds it."""
        run = bench.script("echo once; sleep 0.3; exit 7")
        cluster.faults.lose_answers("POST /apis/batch", 1)
        with pytest.raises(RuntimeUnavailable):
            bench.runtime.launch(run.spec)
        assert run.to_end().exit_code == 7
        assert run.log == b"once\n"

    def test_lists_come_in_pages(self, bench, cluster):
        bench.runtime = KubernetesRuntime(replace(bench.kubernetes, page=2))
        runs = [bench.script(f"sleep 0.3; exit {number}") for number in range(5)]
        with counted(cluster) as asked, ThreadPoolExecutor(5) as pool:
            outcomes = list(pool.map(lambda run: run.to_end(), runs))
            names = bench.runtime.owned()
        assert [outcome.exit_code for outcome in outcomes] == list(range(5))
        assert {run.spec.name for run in runs} <= set(names)
        assert any("continue=" in line for line in asked)

    def test_all_is_listed_anew_after_a_while_and_nobody_asks_for_his_own(self, bench, cluster):
        bench.runtime = KubernetesRuntime(replace(bench.kubernetes, watch_s=1, relist_s=0.5, look_s=60))
        runs = [bench.script(f"sleep 2.5; exit {number}") for number in range(6)]
        for run in runs:
            bench.runtime.launch(run.spec)
        with counted(cluster) as asked, ThreadPoolExecutor(6) as pool:
            outcomes = list(pool.map(lambda run: run.to_end(), runs))
        assert [outcome.exit_code for outcome in outcomes] == list(range(6))
        assert len([line for line in asked if "/jobs?" in line and "limit=" in line]) >= 2
        assert [line for line in asked if line.startswith("GET") and asks_for_one(line)] == []

    def test_the_pod_of_an_ended_job_is_asked_for_where_its_watch_is_late(self, bench, cluster):
        assert bench.script("true").to_end().exit_code == 0  # both watches are there
        cluster.faults.watch_lags["pods"] = 2.0
        run = bench.script("echo said; exit 3")
        outcome = run.to_end()
        assert (outcome.reason, outcome.exit_code, run.log) == (Reason.FAILED, 3, b"said\n")

    def test_a_pod_with_its_labels_that_somebody_else_made_is_not_its_own(self, bench, cluster):
        run = bench.script("sleep 0.5; exit 3")
        with watched(run) as future:
            eventually(lambda: cluster.pod(run.spec.name), "its pod is made")
            own = cluster.pod(run.spec.name)
            metadata = {"name": f"{run.spec.name}-zzzzz", "labels": own["metadata"]["labels"]}
            alike = {"metadata": metadata, "spec": own["spec"], "status": {"phase": "Succeeded"}}
            cluster.store.create("pods", NAMESPACE, alike)
            outcome = future.result(20)
        cluster.store.remove("pods", NAMESPACE, metadata["name"])
        assert outcome.exit_code == 3

    def test_lines_of_a_watch_that_nobody_understands_cost_a_list_and_no_run(self, bench, cluster):
        run = bench.script("sleep 1; exit 7")
        with watched(run) as future:
            eventually(lambda: cluster.pod(run.spec.name), "its pod is made")
            cluster.faults.odd_lines += [b"<html>\n", b'{"type": "MODIFIED"}\n', b"3\n"]
            assert future.result(20).exit_code == 7
        assert cluster.faults.odd_lines == []

    def test_a_full_namespace_is_waited_for(self, bench, cluster):
        words = "jobs.batch is forbidden: exceeded quota: runs, requested: count/jobs.batch=1"
        cluster.faults.fail("POST /apis/batch", 403, message=words)
        run = bench.script("exit 7")
        with pytest.raises(RuntimeUnavailable, match=r"no room in the namespace.*exceeded quota"):
            run.to_end()
        assert run.to_end().exit_code == 7


class TestLog:
    def test_a_log_whose_node_goes_on_in_another_file_is_whole_to_who_follows(
        self, bench, cluster, monkeypatch
    ):
        rotate(cluster, monkeypatch, 200)
        run = bench.script(COUNTING)
        assert run.to_end().message == "exit code 7"
        assert run.log == COUNTED

    def test_who_comes_after_its_node_dropped_the_beginning_says_so(self, bench, cluster, monkeypatch):
        rotate(cluster, monkeypatch, 400)
        run = bench.script(COUNTING.replace("0.02", "0.04"))
        with pytest.raises(Detached):
            run.to_end(run.stop_once_it_says(b"line 20\n", Stop.DETACH))
        outcome = run.to_end(attach_only=True)
        assert outcome.exit_code == 7
        assert (
            "the log is incomplete: RuntimeUnavailable: its node had dropped the beginning" in outcome.message
        )
        lines = run.log.splitlines()
        assert lines == COUNTED.splitlines()  # of these, which are a millisecond apart, none is twice

    def test_a_long_line_in_several_files_of_its_node_is_whole_and_once(self, bench, cluster, monkeypatch):
        """What is read when the run has ended begins in the newest file, within the line."""
        rotate(cluster, monkeypatch, 100_000)
        bar = "for i in 1 2 3 4; do head -c 40000 /dev/zero | tr '\\0' $i; sleep 0.2; done; echo"
        run = bench.script(f"sleep 0.5; {bar}; printf 'no end'; exit 7")
        assert run.to_end().message == "exit code 7"
        assert run.log == b"".join(b"%d" % digit * 40_000 for digit in (1, 2, 3, 4)) + b"\nno end"

    def test_a_line_that_is_drawn_for_long_is_not_doubled_where_its_stream_breaks(self, bench, cluster):
        bar = "for i in 1 2 3 4 5; do head -c 20000 /dev/zero | tr '\\0' $i; sleep 0.7; done; echo"
        run = bench.script(f"{bar}; echo ready; sleep 0.5; echo end; exit 7")
        with running(run) as future:
            cluster.faults.cut_streams()
            outcome = future.result(20)
        assert outcome.message == "exit code 7"
        assert run.log == b"".join(b"%d" % digit * 20_000 for digit in (1, 2, 3, 4, 5)) + b"\nready\nend\n"

    def test_a_log_whose_connection_dies_without_a_word_is_whole_and_in_time(self, bench, cluster):
        bench.runtime = KubernetesRuntime(replace(bench.kubernetes, log_silence_s=0.5))
        run = bench.script("echo ready; sleep 0.4; echo more; sleep 4; echo end; exit 7")
        with running(run) as future:
            assert cluster.faults.silence_streams("/log") >= 1
            eventually(partial(run.says, b"more"), "it goes on")
            assert not future.done()
            outcome = future.result(20)
        assert outcome.message == "exit code 7"
        assert run.log == b"ready\nmore\nend\n"

    def test_and_its_end_is_read_another_way(self, bench, cluster):
        run = bench.script("echo ready; sleep 0.5; echo end; exit 7")
        with running(run) as future:
            assert cluster.faults.silence_streams("/log") >= 1
            outcome = future.result(20)
        assert outcome.message == "exit code 7"
        assert run.log == b"ready\nend\n"

    def test_who_comes_late_to_a_log_says_how_late_it_begins(self, bench, cluster, monkeypatch):
        monkeypatch.setattr(output, "FIRST_ROTATION_S", 2.0)
        rotate(cluster, monkeypatch, 100)
        run = bench.script(
            "echo lost; sleep 3.2; head -c 200 /dev/zero | tr '\\0' x; echo; sleep 1; echo late"
        )
        container = bench.runtime.launch(run.spec)
        assert container.wait(20) is not None
        assert run.to_end(attach_only=True).exit_code == 0
        assert b"what came before, if any, is lost" in run.log
        assert run.log.endswith(b"\nlate\n")


class TestRights:
    def test_the_role_grants_what_is_needed_and_nothing_else(self, bench, cluster, monkeypatch):
        """Every request of every test here is held to it; this one does all that a worker does."""
        cluster.access.used.clear()
        cluster.add_secret("rights", key="value")
        bench.runtime.ping()
        bench.runtime.identity()
        assert bench.runtime.secret_source().read("rights/key") == "value"
        run = bench.script(FOREVER, grace_s=1)
        outcome = run.to_end(run.stop_once_it_says(b"ready", Stop.CANCEL))
        assert outcome.reason is Reason.CANCELLED
        monkeypatch.setattr(refusals, "ASK_AFTER_S", 0.1)
        assert bench.script("true", network="host").to_end().reason is Reason.START_FAILED
        abandoned = bench.script(FOREVER)
        bench.runtime.launch(abandoned.spec)
        cluster.faults.fail("watch=true", 500, times=2)
        cluster.faults.cut_streams()
        eventually(lambda: bench.runtime.attach(abandoned.spec.name), "it is found without a watch")
        bench.runtime.forget(abandoned.spec.name)
        assert cluster.access.used[WORKER] == cluster.access.granted(WORKER)
        assert cluster.access.granted(WORKER) == {
            (group, resource, verb) for group, resource, verbs in (*NEEDED, *BY_NAME) for verb in verbs
        }

    def test_a_missing_right_is_named_before_a_run_meets_it(self, bench, cluster, monkeypatch):
        rules = cluster.access.rules[WORKER]
        fewer = [replace(rule, verbs=tuple({*rule.verbs} - {"patch", "watch"})) for rule in rules]
        monkeypatch.setitem(cluster.access.rules, WORKER, fewer)
        with pytest.raises(RuntimeUnavailable) as caught:
            bench.runtime.ping()
        assert "may not watch jobs, patch jobs, watch pods" in caught.value.message
        assert "deploy/kubernetes/role.yaml" in caught.value.message

    def test_a_stranger_is_told_so(self, cluster, monkeypatch):
        stranger = cluster.kubeconfig(token="nobody-knows-it")
        runtime = KubernetesRuntime(KubernetesOptions(kubeconfig=str(stranger)))
        with pytest.raises(RuntimeUnavailable, match="401 Unauthorized"):
            runtime.ping()
        runtime.close()

    def test_a_token_that_is_written_anew_is_read_anew(self, cluster, monkeypatch, tmp_path):
        monkeypatch.setattr(cluster.access, "tokens", {"first": WORKER})
        token, config = tmp_path / "token", tmp_path / "config"
        token.write_text("first")
        whole = yaml.safe_load(cluster.kubeconfig().read_text())
        whole["users"][0]["user"] = {"tokenFile": str(token)}
        config.write_text(yaml.safe_dump(whole))
        runtime = KubernetesRuntime(KubernetesOptions(kubeconfig=str(config)))
        identity = runtime.identity()
        cluster.access.tokens = {"second": WORKER}
        token.write_text("second")
        with pytest.raises(RuntimeUnavailable, match=rf"at {cluster.server.url} failed: 401 Unauthorized"):
            runtime.identity()
        assert runtime.identity() == identity
        runtime.close()

    def test_a_secret_that_the_role_does_not_name_is_no_missing_one(self, bench, cluster, monkeypatch):
        """As role.yaml advises; the worker is whole all the same."""
        cluster.add_secret("named", key="value")
        rules = [
            replace(rule, names=("named",)) if "secrets" in rule.resources else rule
            for rule in cluster.access.rules[WORKER]
        ]
        monkeypatch.setitem(cluster.access.rules, WORKER, rules)
        bench.runtime.ping()
        assert bench.runtime.secret_source().read("named/key") == "value"
        with pytest.raises(SecretsUnavailable, match="needs the verb get on secrets"):
            bench.runtime.secret_source().read("team/token")


class TestPlaces:
    def test_a_cluster_that_is_away_is_named(self, tmp_path, cluster):
        text = cluster.kubeconfig().read_text().replace(cluster.server.url, "http://127.0.0.1:1")
        (tmp_path / "config").write_text(text)
        runtime = KubernetesRuntime(KubernetesOptions(kubeconfig=str(tmp_path / "config")))
        with pytest.raises(
            RuntimeUnavailable, match=r"no Kubernetes API server answers at http://127\.0\.0\.1:1"
        ):
            runtime.ping()
        runtime.close()

    @pytest.mark.parametrize("options", [{"kubeconfig": "/nowhere"}, {"context": "no-such-context"}])
    def test_a_kubeconfig_that_is_none_is_said(self, cluster, options):
        runtime = KubernetesRuntime(KubernetesOptions(**options))
        with pytest.raises(RuntimeUnavailable, match="no cluster is configured"):
            runtime.ping()
        runtime.close()

    def test_in_a_pod_its_service_account_is_used(self, cluster, monkeypatch, tmp_path):
        from kubernetes.config import incluster_config

        for name in ("KUBECONFIG", "HTTPS_PROXY", "https_proxy"):
            monkeypatch.delenv(name, raising=False)
        monkeypatch.setenv("HOME", str(tmp_path))
        monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
        monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "1")
        for name, constant in (("token", "SERVICE_TOKEN_FILENAME"), ("ca.crt", "SERVICE_CERT_FILENAME")):
            (tmp_path / name).write_text("something")
            monkeypatch.setattr(incluster_config, constant, str(tmp_path / name))
        runtime = KubernetesRuntime()
        # The certificate is none, so that it gets no further than this.
        with pytest.raises(RuntimeUnavailable, match=r"API server answers at"):
            runtime.ping()
        runtime.close()

    def test_a_team_with_a_namespace_of_its_own_has_its_runs_there(self, bench, cluster):
        cluster.add_namespace("sales-runs")
        options = replace(bench.kubernetes, team_namespaces={"sales": "sales-runs"})
        bench.runtime = KubernetesRuntime(options)
        theirs = bench.script("exit 3", labels={LABEL_OWNER: "sales"})
        ours = bench.script("exit 4", labels={LABEL_OWNER: "data"})
        assert [theirs.to_end().exit_code, ours.to_end().exit_code] == [3, 4]
        assert cluster.pod(theirs.spec.name)["metadata"]["namespace"] == "sales-runs"
        assert cluster.pod(ours.spec.name)["metadata"]["namespace"] == NAMESPACE
        assert {theirs.spec.name, ours.spec.name} <= set(bench.runtime.owned())
        assert theirs.to_end(attach_only=True).exit_code == 3
        bench.runtime.forget(theirs.spec.name)
        assert theirs.spec.name not in bench.runtime.owned()


@contextmanager
def counted(cluster: StandInCluster) -> Iterator[list[str]]:
    """The requests that arrive meanwhile."""
    asked: list[str] = []
    cluster.faults.observers.append(asked.append)
    try:
        yield asked
    finally:
        cluster.faults.observers.remove(asked.append)


def asks_for_one(request: str) -> bool:
    """Whether it is about one Job or its pods, and not its log."""
    return "/jobs/" in request or ("/pods?" in request and "punctual.container" in request)


def rotate(cluster: StandInCluster, monkeypatch: pytest.MonkeyPatch, most: int) -> None:
    """Have the node begin another file whenever one has that many bytes."""
    monkeypatch.setattr(cluster.kubelet, "container_log_max_size", most)
    monkeypatch.setattr(cluster.kubelet, "container_log_monitor_interval", 0.0)


def waits_for(cluster: StandInCluster, run: Run, reason: str) -> bool:
    pod: Any = cluster.pod(run.spec.name) or {"status": {}}
    statuses = pod["status"].get("containerStatuses") or [{"state": {}}]
    return bool(statuses[0]["state"].get("waiting", {}).get("reason") == reason)


def edit_job(cluster: StandInCluster, run: Run, **spec: object) -> None:
    def edit(job: Any) -> None:
        job["spec"].update(spec)

    cluster.store.change("jobs", NAMESPACE, run.spec.name, edit)


def assert_nothing_left(bench: Bench, cluster: StandInCluster, run: Run) -> None:
    assert run.spec.name not in bench.runtime.owned()
    eventually(lambda: cluster.pod(run.spec.name) is None, "its pod goes")
