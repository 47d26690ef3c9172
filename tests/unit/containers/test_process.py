"""The process runtime's own parts: what the contract cannot reach from outside."""

from __future__ import annotations

import os
import shutil
import signal
import stat
import subprocess
import uuid
from functools import partial
from pathlib import Path

import pytest

from containers.logs import LogStore
from containers.outcome import Reason, verdict
from containers.process import ProcessOptions, ProcessRuntime
from containers.process.cgroups import Groups, Limits, find_groups
from containers.process.folder import RunFolder, claim
from containers.runtime import LaunchFailed, RuntimeUnavailable
from containers.spec import ContainerSpec, container_name
from containers.supervise import run_to_end
from containers.volumes import Volume, VolumeKind
from tests.contract.bench import eventually


@pytest.fixture
def runtime(tmp_path):
    made = ProcessRuntime(ProcessOptions(home=tmp_path, groups=None))
    yield made
    for name in made.owned():
        made.forget(name)


def spec(*argv: str, **changes) -> ContainerSpec:
    return ContainerSpec(name=container_name(uuid.uuid4(), 1), argv=argv, **changes)


class TestLaunch:
    def test_a_missing_command_is_refused_before_anything_is_made(self, runtime):
        with pytest.raises(LaunchFailed, match="'no-such-command'") as caught:
            runtime.launch(spec("no-such-command"))
        assert caught.value.reason is Reason.START_FAILED
        assert runtime.owned() == []

    @pytest.mark.parametrize(
        ("changes", "message"),
        [
            ({"argv": ()}, "a command is needed"),
            (
                {"argv": ("true",), "image": "nginx:1"},
                "cannot run the image 'nginx:1': .*PUNCTUAL_RUNTIME=docker",
            ),
            (
                {"argv": ("true",), "user": "nobody"},
                "cannot give .* user \\('nobody'\\); run it on a worker of",
            ),
            (
                {
                    "argv": ("true",),
                    "network": "none",
                    "gpus": 1,
                    "volumes": (Volume(kind=VolumeKind.SOURCE, name="/a", target="/b"),),
                    "pod_template": {"spec": {}},
                },
                r"volumes \(/b\), network \('none'\), resources.gpu \(1\), podTemplate \(spec\)",
            ),
            ({"argv": ("true",), "working_dir": "/no/such/folder"}, "'/no/such/folder'"),
            ({"argv": ("./nothing",), "working_dir": "/tmp"}, "'./nothing'"),
        ],
    )
    def test_what_cannot_be_done_is_said(self, runtime, changes, message):
        with pytest.raises(LaunchFailed, match=message):
            runtime.launch(ContainerSpec(name="run", **changes))

    def test_the_path_of_the_options_finds_the_command(self, tmp_path):
        tool = tmp_path / "bin" / "mytool"
        tool.parent.mkdir()
        tool.write_text("#!/bin/sh\necho found\n")
        tool.chmod(0o755)
        options = ProcessOptions(home=tmp_path, path=f"{tool.parent}:/usr/bin:/bin", groups=None)
        wanted = spec("mytool")
        store, run_id = LogStore(tmp_path / "logs"), uuid.uuid4()
        run_to_end(ProcessRuntime(options), wanted, store.writer(run_id, 1), lambda: None)
        assert b"".join(store.read(run_id)) == b"found\n"

    def test_a_command_is_found_from_the_working_directory(self, runtime, tmp_path):
        (tmp_path / "here.sh").write_text("#!/bin/sh\nexit 6\n")
        (tmp_path / "here.sh").chmod(0o755)
        ended = runtime.launch(spec("./here.sh", working_dir=str(tmp_path))).wait(10)
        assert ended.exit_code == 6

    def test_a_command_too_long_for_the_system_is_refused_and_leaves_nothing(self, runtime):
        with pytest.raises(LaunchFailed, match="longer than this system can start"):
            runtime.launch(spec("echo", "x" * 200_000))
        assert runtime.owned() == []

    def test_only_its_owner_may_look_into_a_run(self, tmp_path):
        made = ProcessRuntime(ProcessOptions(home=tmp_path / "new" / "home", groups=None))
        container = made.launch(spec("sh", "-c", "umask; touch mine"))
        container.wait(10)
        below = {path.relative_to(tmp_path): mode_of(path) for path in sorted(tmp_path.rglob("*"))}
        work = RunFolder(made._runs / container.name).work
        assert (
            below.pop((work / "mine").relative_to(tmp_path)) == 0o666 & ~umask()
        )  # the command's own affair
        for path, mode in below.items():
            assert mode == (0o700 if (tmp_path / path).is_dir() else 0o600), path
        made.forget(container.name)

    def test_a_home_that_cannot_be_written_is_said(self):
        with pytest.raises(RuntimeUnavailable, match="/proc/none/runs"):
            ProcessRuntime(ProcessOptions(home=Path("/proc/none"), groups=None)).ping()

    def test_ignored_signals_of_the_worker_are_not_inherited(self, runtime):
        before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
        try:
            ended = runtime.launch(spec("sh", "-c", "kill -USR1 $$; exit 0")).wait(10)
        finally:
            signal.signal(signal.SIGUSR1, before)
        assert ended.exit_code == 128 + signal.SIGUSR1

    def test_without_control_groups_memory_is_held_by_address_space(self, runtime):
        assert runtime.memory_enforcement == "address_space"
        container = runtime.launch(spec("sh", "-c", "ulimit -v", memory_bytes=64 * 1024**2))
        container.wait(10)
        output = RunFolder(runtime._runs / container.name).output
        assert output.read_text() == "65536\n"

    def test_without_control_groups_nobody_knows_whether_a_kill_was_for_memory(self, runtime):
        assert runtime.launch(spec("sh", "-c", "kill -9 $$", memory_bytes=64 * 1024**2)).wait(10).oom is None

    @pytest.mark.skipif(find_groups() is None, reason="no control groups can be made here")
    def test_with_control_groups_a_kill_of_its_own_is_just_that(self, tmp_path):
        runtime = ProcessRuntime(ProcessOptions(home=tmp_path))
        run = spec("sh", "-c", "kill -9 $$", memory_bytes=64 * 1024**2)
        container = runtime.launch(run)
        ended = container.wait(10)
        assert ended is not None
        outcome = verdict(ended, run, container.started_at)
        runtime.forget(run.name)
        assert outcome.message == "exit code 137 (SIGKILL)"

    def test_the_path_of_the_worker_is_not_told(self, tmp_path):
        runtime = ProcessRuntime(ProcessOptions(home=tmp_path, path="/usr/bin:/a/secret", groups=None))
        with pytest.raises(LaunchFailed) as caught:
            runtime.launch(spec("no-such-command" + "x" * 10_000))
        assert "/a/secret" not in caught.value.message
        assert "PUNCTUAL_PROCESS_PATH" in caught.value.message
        assert len(caught.value.message) < 300


class TestClaim:
    def test_one_of_two_claims_gets_the_lock(self, tmp_path):
        folder, lock = claim(tmp_path, "run", {})
        again, second = claim(tmp_path, "run", {})
        assert (again, second) == (folder, None)
        assert lock is not None
        assert folder.running()
        os.close(lock)
        assert not folder.running()
        assert [path.name for path in tmp_path.iterdir()] == ["run"]

    def test_a_claim_whose_launcher_died_before_the_start_is_taken_over(self, runtime):
        wanted = spec("sh", "-c", "exit 9")
        _, lock = claim(runtime._runs, wanted.name, {})
        assert lock is not None
        os.close(lock)
        assert runtime.attach(wanted.name) is None
        assert runtime.launch(wanted).wait(10).exit_code == 9

    def test_a_run_whose_shim_was_killed_is_lost_and_its_children_are_ended(self, runtime):
        container = runtime.launch(spec("sh", "-c", "while :; do sleep 0.1; done"))
        folder = RunFolder(runtime._runs / container.name)
        container._wait_for_group()
        os.kill(folder.pid() or 0, signal.SIGKILL)
        ended = container.wait(10)
        assert ended.exit_code is None
        assert container._processes() == set()
        assert folder.exists()

    def test_the_number_of_an_ended_run_that_now_belongs_to_others_is_left_alone(self, runtime):
        container = runtime.launch(spec("true"))
        container.wait(10)
        innocent = subprocess.Popen(["sleep", "60"], start_new_session=True)
        try:
            for file in ("pid", "group"):
                (runtime._runs / container.name / file).write_text(f"{innocent.pid}\n")
            container.stop(0)
            container.remove()
            assert innocent.poll() is None
        finally:
            innocent.kill()
            innocent.wait()

    def test_a_removal_that_was_cut_off_is_owned_and_finished_later(self, runtime):
        container = runtime.launch(spec("sh", "-c", "while :; do sleep 0.1; done"))
        hidden = RunFolder(runtime._runs / container.name).hide()
        assert runtime.attach(container.name) is None
        assert runtime.owned() == [container.name]
        runtime.forget(container.name)
        assert hidden is not None
        assert not hidden.path.exists()
        assert container._processes() == set()

    @pytest.mark.parametrize("left", [["output", "pid", "work"], ["work"], []])
    def test_one_that_was_cut_off_later_is_finished_too(self, runtime, left):
        """Somebody died over it when more of it was gone, what says when it began among it."""
        container = runtime.launch(spec("true"))
        assert container.wait(10) is not None
        hidden = RunFolder(runtime._runs / container.name).hide()
        assert hidden is not None
        for entry in hidden.path.iterdir():
            if entry.name not in left:
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        runtime.forget(container.name)
        assert not hidden.path.exists()

    def test_a_draft_that_was_left_is_removed_and_one_that_is_being_made_is_not(self, runtime):
        runtime.ping()
        (left, fresh), runs = (container_name(uuid.uuid4(), 1) for _ in range(2)), runtime._runs
        for name in (left, fresh):
            (runs / f".new-{name}-0123abcd" / "work").mkdir(parents=True)
        an_hour_ago = (runs / f".new-{left}-0123abcd").stat().st_mtime - 3600
        os.utime(runs / f".new-{left}-0123abcd", (an_hour_ago, an_hour_ago))
        assert runtime.owned() == [left]
        for name in (left, fresh):
            runtime.forget(name)
        assert [path.name for path in runs.iterdir()] == [f".new-{fresh}-0123abcd"]


def mode_of(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def umask() -> int:
    old = os.umask(0)
    os.umask(old)
    return old


class TestKillingItself:
    """What the command does to those around it is its own failure; a run that is lost is started again."""

    @pytest.mark.parametrize(
        "script",
        ["kill -9 0", "kill -9 $PPID; exec sleep 60", "exec sleep 60 & kill -9 0", "kill -9 $PPID 0"],
    )
    def test_a_command_that_kills_its_group_or_its_parent_has_failed(self, runtime, script):
        container = runtime.launch(spec("sh", "-c", script))
        assert container.wait(10).exit_code == 128 + signal.SIGKILL
        assert container._processes() == set()

    def test_a_command_that_ends_its_group_gently_has_failed_too(self, runtime):
        container = runtime.launch(spec("sh", "-c", "kill -TERM 0; sleep 60"))
        assert container.wait(10).exit_code == 128 + signal.SIGTERM

    def test_a_command_that_stops_its_parent_is_still_ended(self, runtime):
        container = runtime.launch(spec("sh", "-c", "kill -STOP $PPID; echo stopped; exec sleep 60"))
        output = RunFolder(runtime._runs / container.name).output
        eventually(partial(_says, output, "stopped\n"), "it stops its parent")
        container.stop(0.1)
        assert container.wait(10).exit_code == 128 + signal.SIGKILL
        assert container._processes() == set()


def _says(output: Path, text: str) -> bool:
    return output.read_text() == text


def test_kill_all_ends_all_and_leaves_how_they_ended(runtime):
    specs = [spec("sh", "-c", "trap '' TERM; echo deaf; while :; do sleep 0.05; done") for _ in range(3)]
    ended = runtime.launch(spec("true"))
    ended.wait(10)
    containers = [runtime.launch(wanted) for wanted in specs]
    for wanted in specs:
        output = RunFolder(runtime._runs / wanted.name).output
        eventually(partial(_says, output, "deaf\n"), "it ignores SIGTERM")
    assert sorted(runtime.kill_all(0.2)) == sorted(wanted.name for wanted in specs)
    assert [container.wait(0).exit_code for container in containers] == [137] * 3
    assert runtime.kill_all(0) == []


class TestControlGroups:
    def test_version_2_writes_one_folder(self, tmp_path):
        parent = tmp_path / "punctual"
        folder = parent / "run"
        folder.mkdir(parents=True)
        for file in ("memory.max", "memory.swap.max", "pids.max", "cpu.max"):
            (folder / file).touch()
        group = Groups((parent,), 2).create("run", Limits(64 * 1024**2, 0.5, 100))
        assert group.folders == (folder,)
        assert {file.name: file.read_text() for file in folder.iterdir()} == {
            "memory.max": "67108864",
            "memory.swap.max": "0",
            "pids.max": "100",
            "cpu.max": "50000 100000",
        }

    def test_version_1_writes_a_folder_for_each_controller(self, tmp_path):
        files = {
            "memory": ("memory.limit_in_bytes", "memory.memsw.limit_in_bytes"),
            "pids": ("pids.max",),
            "cpu": ("cpu.cfs_period_us", "cpu.cfs_quota_us"),
        }
        for controller, names in files.items():
            (tmp_path / controller / "run").mkdir(parents=True)
            for name in names:
                (tmp_path / controller / "run" / name).touch()
        Groups(tuple(tmp_path / name for name in files), 1).create("run", Limits(64 * 1024**2, 0.5, 100))
        assert {file.name: file.read_text() for file in tmp_path.rglob("*.*")} == {
            "memory.limit_in_bytes": "67108864",
            "memory.memsw.limit_in_bytes": "67108864",
            "pids.max": "100",
            "cpu.cfs_period_us": "100000",
            "cpu.cfs_quota_us": "50000",
        }

    @pytest.mark.parametrize("file", ["memory.events", "memory.oom_control"])
    def test_a_kill_for_want_of_memory_is_read(self, tmp_path, file):
        folder = tmp_path / "run"
        folder.mkdir()
        group = Groups((tmp_path,), 2).group("run")
        assert not group.ran_out_of_memory()
        (folder / file).write_text("low 0\noom 1\noom_kill 0\n")
        assert not group.ran_out_of_memory()
        (folder / file).write_text("low 0\noom 1\noom_kill 2\n")
        assert group.ran_out_of_memory()

    def test_a_group_that_is_gone_has_no_processes_and_is_removed_again(self, tmp_path):
        group = Groups((tmp_path,), 2).group("run")
        group.remove()
        assert group.processes() == set()

    def test_where_none_can_be_made_there_are_none(self, tmp_path):
        assert find_groups(tmp_path) is None
