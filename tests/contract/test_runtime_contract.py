"""What every runtime promises. One suite, over all of them, on real processes and containers."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import replace
from datetime import timedelta

import pytest

from containers.logs import LogLimit, LogStore
from containers.outcome import LOSSES, Outcome, Reason
from containers.secrets import Secret
from containers.spec import LABEL_NAMESPACE, LEAST_PIDS
from containers.supervise import Detached, NotLaunched, Stop
from scheduler_project.kernel.clock import monotonic
from tests.contract.bench import Bench, eventually

FOREVER = "echo ready; while :; do sleep 0.05; done"
COUNTING = "i=1; while [ $i -le 40 ]; do echo line $i; i=$((i+1)); sleep 0.05; done; exit 7"
COUNTED = b"".join(b"line %d\n" % number for number in range(1, 41))


class TestEnding:
    def test_a_command_that_ends_well_has_succeeded(self, bench):
        outcome = bench.script("echo done").to_end()
        assert (outcome.reason, outcome.exit_code) == (Reason.SUCCEEDED, 0)

    def test_the_exit_code_is_told(self, bench):
        outcome = bench.script("exit 3").to_end()
        assert (outcome.reason, outcome.exit_code, outcome.message) == (Reason.FAILED, 3, "exit code 3")

    def test_start_and_end_are_in_order_and_as_long_as_the_run(self, bench):
        outcome = bench.script("sleep 0.3").to_end()
        least = timedelta(seconds=0 if bench.whole_seconds else 0.25)
        assert least <= outcome.finished_at - outcome.started_at < timedelta(seconds=5)

    def test_a_signal_is_named(self, bench):
        outcome = bench.script("kill -SEGV $$").to_end()
        assert (outcome.reason, outcome.exit_code) == (Reason.FAILED, 139)
        assert outcome.message == "exit code 139 (SIGSEGV)"

    def test_an_unknown_command_cannot_start_and_is_named(self, bench):
        outcome = bench.run("no-such-command", "x").to_end()
        assert (outcome.reason, outcome.exit_code) == (Reason.START_FAILED, None)
        assert "no-such-command" in outcome.message

    def test_a_command_that_itself_exits_127_has_failed(self, bench):
        outcome = bench.script("exit 127").to_end()
        assert (outcome.reason, outcome.exit_code) == (Reason.FAILED, 127)

    def test_arguments_arrive_as_they_are(self, bench):
        run = bench.run("printf", "%s|", "a b", "$HOME", "", "'\"", "*", "ä\n")
        assert run.to_end().reason is Reason.SUCCEEDED
        assert run.log.decode() == "a b|$HOME||'\"|*|ä\n|"

    def test_memory_beyond_the_limit_is_out_of_memory(self, bench):
        eater = "head -c 64m /dev/zero | tail -c 60m >/dev/null"
        if bench.memory_enforcement != "cgroup":
            assert bench.script(eater, memory_bytes=16 * 1024**2).to_end().reason is Reason.FAILED
            return
        # An engine misses about one in a hundred; test_docker_runtime.py says what is told then.
        outcomes: list[Outcome] = []
        while len(outcomes) < 3 and Reason.OUT_OF_MEMORY not in [outcome.reason for outcome in outcomes]:
            outcomes.append(bench.script(eater, memory_bytes=16 * 1024**2).to_end())
        assert outcomes[-1].reason is Reason.OUT_OF_MEMORY, outcomes
        assert "16 MiB" in outcomes[-1].message

    def test_no_process_survives_the_end_of_the_command(self, bench):
        run = bench.script("(trap '' TERM; while :; do sleep 0.1; done) & echo started; exit 0")
        assert run.to_end().reason is Reason.SUCCEEDED
        assert bench.processes(run) == set()


class TestStopping:
    def test_a_time_out_ends_the_whole_tree_even_what_ignores_sigterm(self, bench):
        stubborn = "(trap '' TERM; while :; do sleep 0.1; done) & trap '' TERM; while :; do sleep 0.1; done"
        run = bench.script(stubborn, timeout_s=0.6)
        outcome = run.to_end()
        assert (outcome.reason, outcome.exit_code) == (Reason.TIMED_OUT, 137)
        assert outcome.message == "stopped at its time limit of 600ms; exit code 137 (SIGKILL)"
        assert bench.processes(run) == set()

    def test_a_time_out_finds_a_child_in_a_session_of_its_own(self, bench):
        run = bench.script(
            "setsid sh -c 'trap \"\" TERM; while :; do sleep 0.1; done' & " + FOREVER, timeout_s=0.6
        )
        assert run.to_end().reason is Reason.TIMED_OUT
        assert bench.processes(run) == set()

    def test_a_cancelled_run_gets_its_grace(self, bench):
        run = bench.script("trap 'echo bye; exit 0' TERM; " + FOREVER, grace_s=10)
        outcome = run.to_end(run.stop_once_it_says(b"ready", Stop.CANCEL))
        assert outcome.reason is Reason.CANCELLED
        assert run.log.startswith(b"ready\n")
        assert run.log.endswith(b"bye\n")

    def test_a_cancelled_run_that_does_not_go_is_killed(self, bench):
        run = bench.script("trap '' TERM; " + FOREVER, grace_s=0.2)
        outcome = run.to_end(run.stop_once_it_says(b"ready", Stop.CANCEL))
        assert (outcome.reason, outcome.exit_code) == (Reason.CANCELLED, 137)
        assert bench.processes(run) == set()

    def test_a_cancel_finds_a_daemon_that_has_left_its_parents_and_its_session(self, bench):
        daemon = "trap '' TERM HUP; echo daemon; while :; do sleep 0.1; done"
        run = bench.script(f'(setsid sh -c "({daemon}) &" &) ; echo ready; {FOREVER}', grace_s=0.2)
        outcome = run.to_end(run.stop_once_it_says(b"daemon", Stop.CANCEL))
        assert outcome.reason is Reason.CANCELLED
        assert bench.processes(run) == set()

    def test_a_watcher_that_has_to_end_does_not_wait_for_the_grace_and_the_next_one_stops_it(self, bench):
        run = bench.script("trap 'echo asked' TERM; " + FOREVER, grace_s=30)
        began = monotonic()
        with pytest.raises(Detached):
            run.to_end(lambda: Stop.DETACH if run.says(b"asked") else run.says(b"ready") and Stop.CANCEL)
        assert monotonic() - began < 15
        assert bench.processes(run) != set()
        again = replace(run, spec=replace(run.spec, grace_s=0.2))
        outcome = again.to_end(lambda: Stop.CANCEL, attach_only=True)
        assert (outcome.reason, outcome.exit_code) == (Reason.CANCELLED, 137)
        assert bench.processes(run) == set()

    def test_the_time_limit_counts_from_the_start_of_the_container(self, bench):
        run = bench.script(FOREVER, timeout_s=0.6)
        with pytest.raises(Detached):
            run.to_end(run.stop_once_it_says(b"ready", Stop.DETACH))
        outcome = run.to_end()
        assert outcome.reason is Reason.TIMED_OUT
        assert outcome.finished_at - outcome.started_at < timedelta(seconds=4)

    @pytest.mark.parametrize("code", [0, 3])
    def test_a_run_that_answers_its_time_out_when_its_watcher_is_gone_has_timed_out(self, bench, code):
        script = f"trap 'echo asked; sleep 1; exit {code}' TERM; echo ready; while :; do sleep 0.1; done"
        run = bench.script(script, timeout_s=1.0, grace_s=10)
        with pytest.raises(Detached):
            run.to_end(run.stop_once_it_says(b"asked", Stop.DETACH))
        eventually(lambda: bench.processes(run) == set(), "it ends unseen")
        outcome = run.to_end(attach_only=True)
        assert outcome.reason is Reason.TIMED_OUT
        assert outcome.finished_at - outcome.started_at < timedelta(seconds=5)

    def test_stopping_twice_is_stopping_once(self, bench):
        run = bench.script(FOREVER)
        container = bench.runtime.launch(run.spec)
        container.stop(0.1)
        container.stop(0.1)
        assert container.wait(1) is not None


class TestSurviving:
    def test_a_detached_run_goes_on_and_is_attached_to_again(self, bench):
        run = bench.script(COUNTING)
        with pytest.raises(Detached):
            run.to_end(run.stop_once_it_says(b"line 5\n", Stop.DETACH))
        assert bench.processes(run) != set()
        outcome = run.to_end(attach_only=True)
        assert (outcome.reason, outcome.exit_code) == (Reason.FAILED, 7)
        assert run.log == COUNTED

    def test_a_run_outlives_kill_9_of_its_watcher_with_its_log_whole_and_once(self, bench):
        run = bench.script(COUNTING)
        arguments = [bench.kind, bench.image, str(bench.home), str(run.id), COUNTING]
        watcher = subprocess.Popen(
            [sys.executable, "-m", "tests.contract.watcher", *arguments], start_new_session=True
        )
        eventually(lambda: b"line 5\n" in run.log, "the watcher copies the log")
        watcher.send_signal(signal.SIGKILL)
        assert watcher.wait() == -signal.SIGKILL
        assert b"line 40\n" not in run.log
        outcome = run.to_end()
        assert (outcome.reason, outcome.exit_code) == (Reason.FAILED, 7)
        assert run.log == COUNTED

    def test_the_end_of_a_run_that_nobody_watched_is_read_later(self, bench):
        run = bench.script("echo alone; exit 4")
        bench.runtime.launch(run.spec).wait(10)
        other = bench.another_runtime()
        container = other.attach(run.spec.name)
        assert container is not None
        ended = container.wait(0)
        other.close()
        assert ended is not None
        assert ended.exit_code == 4
        assert run.to_end(attach_only=True).exit_code == 4
        assert run.log == b"alone\n"

    def test_a_second_launch_of_the_same_name_attaches(self, bench):
        run = bench.script("echo once; sleep 0.5; exit 5")
        first = bench.runtime.launch(run.spec)
        other = bench.another_runtime()
        second = other.launch(run.spec)
        assert second.started_at == first.started_at
        assert [first.wait(10).exit_code, second.wait(10).exit_code] == [5, 5]
        other.close()
        assert run.to_end().exit_code == 5
        assert run.log == b"once\n"

    def test_many_launches_at_once_of_one_name_start_it_once(self, bench):
        run = bench.script("echo once; sleep 0.3")
        with ThreadPoolExecutor(8) as pool:
            launched = list(pool.map(bench.runtime.launch, [run.spec] * 8))
        assert len({container.started_at for container in launched}) == 1
        assert run.to_end().reason is Reason.SUCCEEDED
        assert run.log == b"once\n"

    def test_a_run_cancelled_by_a_watcher_that_died_is_cancelled(self, bench):
        run = bench.script(FOREVER)
        bench.runtime.launch(run.spec).stop(0.5)
        assert run.to_end(lambda: Stop.CANCEL, attach_only=True).reason is Reason.CANCELLED

    def test_nothing_to_attach_to_is_lost(self, bench):
        run = bench.script("true")
        assert bench.runtime.attach(run.spec.name) is None
        assert run.to_end(attach_only=True).reason is Reason.LOST
        assert bench.runtime.owned() == [] or run.spec.name not in bench.runtime.owned()

    def test_a_run_that_somebody_removes_is_lost(self, bench):
        run = bench.script(FOREVER)
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(run.to_end)
            eventually(lambda: b"ready" in run.log, "the run starts")
            bench.runtime.forget(run.spec.name)
            outcome = future.result(20)
        assert outcome.reason in {Reason.LOST, Reason.DELETED}
        assert outcome.reason in LOSSES
        assert bench.processes(run) == set()

    def test_twenty_at_once_all_end_right(self, bench):
        runs = [bench.script(f"echo run {number}; sleep 0.2; exit {number}") for number in range(20)]
        with ThreadPoolExecutor(20) as pool:
            outcomes = list(pool.map(lambda run: run.to_end(), runs))
        assert [outcome.exit_code for outcome in outcomes] == list(range(20))
        assert [run.log for run in runs] == [b"run %d\n" % number for number in range(20)]


class TestRemoving:
    def test_what_is_owned_is_told_apart_by_its_namespace(self, bench):
        run = bench.script("true", labels={LABEL_NAMESPACE: "here.1"})
        run.to_end()
        assert run.spec.name in bench.runtime.owned("here.1")
        assert run.spec.name not in bench.runtime.owned("here")

    def test_forgetting_is_idempotent(self, bench):
        run = bench.script("true")
        run.to_end()
        assert run.spec.name in bench.runtime.owned()
        container = bench.runtime.attach(run.spec.name)
        assert container is not None
        container.remove()
        container.remove()
        bench.runtime.forget(run.spec.name)
        assert run.spec.name not in bench.runtime.owned()
        assert bench.runtime.attach(run.spec.name) is None

    def test_forgetting_a_running_one_ends_it(self, bench):
        run = bench.script(FOREVER)
        bench.runtime.launch(run.spec)
        eventually(lambda: bench.processes(run), "the run starts")
        bench.runtime.forget(run.spec.name)
        assert bench.processes(run) == set()


class TestLog:
    def test_both_streams_arrive_in_order(self, bench):
        run = bench.script("i=0; while [ $i -lt 200 ]; do echo o$i; echo e$i >&2; i=$((i+1)); done")
        run.to_end()
        lines = run.log.decode().split()
        assert [line for line in lines if line[0] == "o"] == [f"o{number}" for number in range(200)]
        assert [line for line in lines if line[0] == "e"] == [f"e{number}" for number in range(200)]
        if bench.kind not in ("docker", "kubernetes"):  # one file for both; an engine reads two pipes
            assert lines == [f"{stream}{number}" for number in range(200) for stream in "oe"]

    def test_streams_that_take_turns_stay_in_turn(self, bench):
        run = bench.script("for i in 1 2 3; do echo o$i; sleep 0.1; echo e$i >&2; sleep 0.1; done")
        run.to_end()
        assert run.log.decode().split() == ["o1", "e1", "o2", "e2", "o3", "e3"]

    def test_the_log_is_live(self, bench):
        run = bench.script("trap 'exit 0' TERM; " + FOREVER)
        outcome = run.to_end(run.stop_once_it_says(b"ready", Stop.CANCEL))
        assert outcome.reason is Reason.CANCELLED

    def test_bytes_that_are_no_text_and_a_missing_newline_are_kept(self, bench):
        run = bench.script(r"printf '\377\376\000abc\r\200'; printf 'no end'")
        run.to_end()
        assert run.log == b"\xff\xfe\x00abc\r\x80no end"

    def test_a_very_long_line_is_whole(self, bench):
        run = bench.script("head -c 1000000 /dev/zero | tr '\\0' x; echo; echo after")
        run.to_end()
        assert run.log == b"x" * 1_000_000 + b"\nafter\n"

    def test_big_output_keeps_head_and_tail_and_states_the_gap(self, bench):
        limit = LogLimit(head=100_000, tail=100_000)
        bench.logs = LogStore(bench.home / "limited", limit)
        line = "0123456789" * 10
        run = bench.script(f"yes {line} | head -c 10100000; echo the end")
        assert run.to_end().reason is Reason.SUCCEEDED
        whole = (line.encode() + b"\n") * 100_000 + b"the end\n"
        left_out = f"\n[{len(whole) - 200_000:,} bytes of output are left out here]\n".encode()
        assert run.log == whole[:100_000] + left_out + whole[-100_000:]

    def test_an_attached_log_beyond_the_limit_goes_on_where_it_was(self, bench):
        bench.logs = LogStore(bench.home / "limited", LogLimit(head=20, tail=30))
        run = bench.script(COUNTING)
        with pytest.raises(Detached):
            run.to_end(run.stop_once_it_says(b"left out here", Stop.DETACH))
        assert b"line 40\n" not in run.log
        run.to_end(attach_only=True)
        assert run.log.startswith(COUNTED[:20])
        assert run.log.endswith(COUNTED[-30:])


class TestEnvironment:
    def test_only_what_the_spec_says_is_in_the_environment(self, bench, monkeypatch):
        monkeypatch.setenv("BROKER_URL", "amqp://user:secret@broker/")
        monkeypatch.setenv("HTTP_PROXY", "http://secret.example/")
        run = bench.run("env", env={"GREETING": "a b=c ü"})
        run.to_end()
        seen = dict(line.split("=", 1) for line in run.log.decode().splitlines())
        assert seen["GREETING"] == "a b=c ü"
        assert "secret" not in run.log.decode()
        if bench.is_real_cluster:  # which tells every container where its API server is
            seen = {name: value for name, value in seen.items() if not name.startswith("KUBERNETES_")}
        assert set(seen) <= {"GREETING", "PATH", "HOME", "LANG", "PWD", "HOSTNAME", "PUNCTUAL_RUN"}

    @pytest.mark.parametrize("kind", ["process", pytest.param("docker", marks=pytest.mark.docker)])
    def test_secrets_are_variables_and_hidden_in_the_log(self, kind, request, tmp_path):
        """On Kubernetes the cluster gives them (test_kubernetes_runtime.py)."""
        image = request.getfixturevalue("busybox") if kind == "docker" else ""
        with closing(Bench(kind, image, tmp_path)) as bench:
            secret = Secret("TOKEN", "api/token", "correct horse")
            run = bench.script('echo "${#TOKEN} $TOKEN"', secrets=(secret,), env={"TOKEN": "shadowed"})
            assert run.to_end().reason is Reason.SUCCEEDED
            assert run.log.startswith(b"13 ")
            assert b"horse" not in run.log
            assert secret.value not in repr(run.spec)

    def test_the_working_directory_is_as_asked(self, bench):
        run = bench.run("pwd", working_dir="/tmp")
        run.to_end()
        assert run.log == b"/tmp\n"

    def test_nothing_waits_on_standard_input(self, bench):
        run = bench.script("cat; echo at its end", timeout_s=10)
        assert run.to_end().reason is Reason.SUCCEEDED
        assert run.log == b"at its end\n"

    def test_two_processes_are_enough_for_a_command(self, bench):
        run = bench.run("echo", "said", pids_limit=LEAST_PIDS)
        if bench.kind != "kubernetes":  # where docs/containers.md says that it is a setting of each node
            run.to_end()
            assert run.log == b"said\n"

    def test_what_no_system_starts_is_refused_and_leaves_nothing(self, bench):
        """Each variable is short enough, and so are most of them together."""
        secrets = tuple(Secret(f"TOKEN{number}", "api/token", "x" * 64_000) for number in range(32))
        run = bench.run("echo", "said", secrets=secrets)
        outcome = run.to_end()
        assert outcome.reason is Reason.START_FAILED
        assert "longer than this system can start" in outcome.message and "xx" not in outcome.message
        assert run.spec.name not in bench.runtime.owned()
        fewer = bench.run("echo", "said", secrets=secrets[:30])
        assert bench.kind == "kubernetes" or fewer.to_end().reason is Reason.SUCCEEDED

    def test_forking_without_end_meets_a_limit(self, bench):
        if bench.kind == "kubernetes":
            return  # a setting of each node (podPidsLimit), as docs/containers.md says; no pod can change it
        if bench.memory_enforcement != "cgroup":
            assert (
                bench.kind != "docker"
            )  # the process runtime's docstring says that this is not held without groups
            return
        script = "i=0; while [ $i -lt 40 ]; do sleep 5 & i=$((i+1)); done; echo all started"
        run = bench.script(script, pids_limit=10, timeout_s=10)
        outcome = run.to_end()
        assert outcome.reason is not Reason.TIMED_OUT
        assert b"all started" not in run.log
        assert bench.processes(run) == set()


def test_the_engine_answers_a_ping(bench: Bench):
    bench.runtime.ping()


def test_a_run_has_a_session_of_its_own(bench: Bench):
    """So that a signal to the worker's group, Ctrl-C for one, is not for the run."""
    run = bench.script("trap 'exit 0' TERM; echo ready; while :; do :; done")
    bench.runtime.launch(run.spec)
    eventually(lambda: bench.processes(run), "the run starts")
    lasting = min(bench.processes(run))
    assert bench.is_real_cluster or os.getsid(lasting) != os.getsid(0)


class TestLaunching:
    def test_a_cancel_that_arrives_before_the_start_starts_nothing(self, bench: Bench):
        run = bench.script("echo started")
        outcome = run.to_end(lambda: Stop.CANCEL)
        assert (outcome.reason, outcome.exit_code) == (Reason.CANCELLED, None)
        assert (run.log, run.spec.name in bench.runtime.owned()) == (b"", False)

    def test_a_watcher_that_has_to_end_before_the_start_leaves_it_to_another(self, bench: Bench):
        run = bench.script("echo started")
        with pytest.raises(NotLaunched):
            run.to_end(lambda: Stop.DETACH)
        assert run.to_end().reason is Reason.SUCCEEDED
        assert run.log == b"started\n"

    def test_an_engine_has_one_identity_for_all_who_reach_it(self, bench: Bench):
        identity = bench.runtime.identity()
        with closing(bench.another_runtime()) as another:
            assert another.identity() == identity
        assert 0 < len(identity) <= 100
        assert identity.isascii() and " " not in identity
