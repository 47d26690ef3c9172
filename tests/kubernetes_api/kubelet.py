"""One node: it runs each pod's words as a process of this host, and reports what becomes of it.

    Pending ─ scheduled ─ image ─ environment ─► running ─► terminated ─► Succeeded | Failed
                             └ ErrImagePull, ImagePullBackOff, InvalidImageName, ErrImageNeverPull
                                         └ CreateContainerConfigError
    deletionTimestamp ─► SIGTERM ─ grace ─► SIGKILL ─► terminated ─► taken off the books

The processes are those of containers/process, which ends whole trees and notices memory that ran out.
"""

from __future__ import annotations

import base64
import re
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from containers.outcome import Exit
from containers.process import ProcessOptions, ProcessRuntime
from containers.process.container import ProcessContainer
from containers.process.folder import RunFolder
from containers.runtime import LaunchFailed
from containers.spec import LEAST_MEMORY_BYTES, ContainerSpec
from tests.kubernetes_api.controllers import TERMINAL, set_condition
from tests.kubernetes_api.expansion import expanded
from tests.kubernetes_api.faults import Faults
from tests.kubernetes_api.nodelog import NodeLog
from tests.kubernetes_api.scheduling import Node, quantity, unschedulable
from tests.kubernetes_api.store import Store, now_text

Json = dict[str, Any]
TICK_S = 0.02
BACK_OFF_S = 0.3
IMAGE = re.compile(r"[a-z0-9][a-z0-9.:/_@-]*", re.ASCII)
SIGKILLED = 137


@dataclass
class Blow:
    """What is to befall a running pod: its phase, and what is said of it."""

    reason: str
    message: str
    grace: int = 1


@dataclass
class Kubelet:
    store: Store
    faults: Faults
    node: Node
    folder: Path
    logs: dict[str, NodeLog] = field(default_factory=dict)
    blows: dict[str, Blow] = field(default_factory=dict)
    container_log_max_size: int = 10 * 1024 * 1024
    container_log_monitor_interval: float = 10.0

    def __post_init__(self) -> None:
        self._runtime = ProcessRuntime(ProcessOptions(home=self.folder))
        self.memory_enforcement = self._runtime.memory_enforcement
        self._syncing: set[str] = set()
        self.closed = threading.Event()
        self._thread = threading.Thread(target=self._run, name="kubelet", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """End the processes of all pods."""
        self.closed.set()
        self._thread.join(5.0)
        for name in self._runtime.owned():
            self._runtime.forget(name)

    def _run(self) -> None:
        version = 0
        while not self.closed.is_set():
            version = self.store.wait(version, 0.1)
            for pod in self.store.everywhere("pods"):
                uid = pod["metadata"]["uid"]
                if uid in self._syncing or not self._schedule(pod):
                    continue
                self._syncing.add(uid)
                worker = _PodWorker(self, pod, self._runtime)
                threading.Thread(target=worker.run, name=f"pod-{uid}", daemon=True).start()

    def _schedule(self, pod: Json) -> bool:
        """Whether the pod is to be run here now."""
        if pod["status"].get("phase") in TERMINAL:
            return False
        if pod["spec"].get("nodeName"):
            return True
        if "deletionTimestamp" in pod["metadata"]:  # what nobody runs is failed by garbage collection
            self._edit(pod, lambda held: held["status"].update(phase="Failed"))
            return False
        refusal = self.faults.unschedulable or self.node.refusal(pod)
        if refusal:
            set_condition(self.store, "pods", pod, unschedulable(self.node, refusal))
            return False
        self._edit(pod, lambda held: held["spec"].update(nodeName=self.node.name))
        set_condition(self.store, "pods", pod, {"type": "PodScheduled", "status": "True"})
        return True

    def _edit(self, pod: Json, edit: Any) -> None:
        self.store.change("pods", pod["metadata"]["namespace"], pod["metadata"]["name"], edit)


class _PodWorker:
    """One pod, from its node's point of view."""

    def __init__(self, kubelet: Kubelet, pod: Json, runtime: ProcessRuntime) -> None:
        self._kubelet = kubelet
        self._pod = pod
        self._runtime = runtime
        self._namespace = pod["metadata"]["namespace"]
        self._pod_name = pod["metadata"]["name"]
        owners = pod["metadata"].get("ownerReferences") or [{"name": self._pod_name}]
        self._name = owners[0]["name"]  # one pod for each Job: its processes are found by the Job's name
        self._container = pod["spec"]["containers"][0]
        self._begun = ""

    def run(self) -> None:
        self._status(startTime=now_text(), hostIP="127.0.0.1", phase="Pending")
        self._waiting("ContainerCreating", "")
        if not self._image_is_here():
            return self._never_ran()
        env = self._environment_is_known()
        if env is None:
            return self._never_ran()
        try:
            process = self._runtime.launch(self._spec(env))
        except LaunchFailed as failure:
            text = f"failed to create containerd task: failed to start container: exec: {failure.message}"
            return self._terminated(128, "StartError", text)
        return self._watch(process)

    def _image_is_here(self) -> bool:
        """Whether it came; where not, the pod is to be ended."""
        image, policy = self._container["image"], self._container.get("imagePullPolicy", "IfNotPresent")
        failures = 0
        while not self._is_ending():
            problem = self._kubelet.faults.absent_images.get(image)
            if IMAGE.fullmatch(image) is None:
                self._waiting("InvalidImageName", f'Failed to apply default image tag "{image}": invalid')
            elif problem is None:
                return True
            elif policy == "Never":
                self._waiting(
                    "ErrImageNeverPull", f'Container image "{image}" is not present with pull policy'
                )
            elif failures % 2 == 0:
                self._waiting("ErrImagePull", f'failed to pull and unpack image "{image}": {problem}')
            else:
                self._waiting("ImagePullBackOff", f'Back-off pulling image "{image}": {problem}')
            failures += 1
            self._kubelet.closed.wait(BACK_OFF_S)
        return False

    def _environment_is_known(self) -> dict[str, str] | None:
        while not self._is_ending():
            try:
                return self._environment()
            except LookupError as error:
                self._waiting("CreateContainerConfigError", str(error.args[0]))
            self._kubelet.closed.wait(BACK_OFF_S)
        return None

    def _environment(self) -> dict[str, str]:
        """Raises LookupError, in the kubelet's words, for what is not there."""
        env: dict[str, str] = {}
        for variable in self._container.get("env") or ():
            reference = (variable.get("valueFrom") or {}).get("secretKeyRef")
            if reference is None:
                env[variable["name"]] = expanded(variable.get("value", ""), env)
            else:
                env[variable["name"]] = self._secret(reference)
        return env

    def _secret(self, reference: Json) -> str:
        found = self._kubelet.store.find("secrets", self._namespace, reference["name"])
        if found is None:
            raise LookupError(f'secret "{reference["name"]}" not found')
        if reference["key"] not in found.get("data", {}):
            place = f"{self._namespace}/{reference['name']}"
            raise LookupError(f"couldn't find key {reference['key']} in Secret {place}")
        return base64.b64decode(found["data"][reference["key"]]).decode()

    def _spec(self, env: dict[str, str]) -> ContainerSpec:
        words = [*self._container.get("command", ()), *self._container.get("args", ())]
        limits = (self._container.get("resources") or {}).get("limits") or {}
        memory = int(quantity(limits["memory"])) if "memory" in limits else None
        return ContainerSpec(
            name=self._name,
            argv=tuple(expanded(word, env) for word in words),
            env={"HOSTNAME": self._pod_name, **env},
            working_dir=self._container.get("workingDir", ""),
            memory_bytes=None if memory is None else max(memory, LEAST_MEMORY_BYTES),
            cpus=quantity(limits["cpu"]) if "cpu" in limits else None,
        )

    def _watch(self, process: ProcessContainer) -> None:
        path = self._kubelet.folder / f"{self._pod['metadata']['uid']}.log"
        log = NodeLog(
            path, self._kubelet.container_log_max_size, self._kubelet.container_log_monitor_interval
        )
        self._kubelet.logs[self._pod["metadata"]["uid"]] = log
        over = threading.Event()
        output = RunFolder(self._kubelet.folder / "runs" / self._name).output
        copying = threading.Thread(target=log.copy, args=(output, over), daemon=True)
        copying.start()
        self._begun = now_text()
        self._state({"running": {"startedAt": self._begun}}, phase="Running", ready=True)
        ended = self._end_of(process)
        over.set()
        copying.join()
        if self._kubelet.closed.is_set() or ended is None:
            return
        self._runtime.forget(self._name)
        self._report(ended)

    def _end_of(self, process: ProcessContainer) -> Exit | None:
        while (ended := process.wait(TICK_S)) is None and not self._kubelet.closed.is_set():
            if self._silent():
                continue
            blow = self._kubelet.blows.get(self._name)
            if blow is not None:
                process.stop(blow.grace)
            elif (grace := self._grace()) is not None:
                self._stop(process, grace)
        while self._silent() and not self._kubelet.closed.is_set():
            self._kubelet.closed.wait(TICK_S)
        return ended

    def _stop(self, process: ProcessContainer, grace: int) -> None:
        """SIGTERM, and SIGKILL after the grace, which a later request can shorten."""
        process.terminate()
        waited = 0.0
        while waited < (self._grace() or 0) and process.wait(TICK_S) is None:
            waited += TICK_S
        process.stop(0) if process.wait(0) is None else None

    def _report(self, ended: Exit) -> None:
        reason = "Completed" if ended.exit_code == 0 else "OOMKilled" if ended.oom else "Error"
        blow = self._kubelet.blows.get(self._name)
        if blow is not None:
            self._status(reason=blow.reason, message=blow.message)
        self._terminated(SIGKILLED if ended.exit_code is None else ended.exit_code, reason, "")

    def _terminated(self, code: int, reason: str, message: str) -> None:
        now = now_text()
        state = {"exitCode": code, "reason": reason, "startedAt": self._begun or now, "finishedAt": now}
        if message:
            state["message"] = message
        blown = self._name in self._kubelet.blows
        phase = "Succeeded" if code == 0 and not blown else "Failed"
        self._state({"terminated": state}, phase=phase, ready=False)
        self._take_off()

    def _never_ran(self) -> None:
        if not self._kubelet.closed.is_set():
            self._status(phase="Failed")
            self._take_off()

    def _take_off(self) -> None:
        """A pod that was deleted goes once its containers have ended; one that was not, when it is."""
        found = self._find()
        if found is not None and "deletionTimestamp" in found["metadata"]:
            self._kubelet.store.remove("pods", self._namespace, self._pod_name)

    def _find(self) -> Json | None:
        return self._kubelet.store.find("pods", self._namespace, self._pod_name)

    def _grace(self) -> int | None:
        """Seconds, where it is to be ended."""
        found = self._find()
        if found is None:
            return 0
        grace: int | None = found["metadata"].get("deletionGracePeriodSeconds")
        return grace

    def _is_ending(self) -> bool:
        return self._kubelet.closed.is_set() or self._grace() is not None

    def _silent(self) -> bool:
        return self._kubelet.node.name in self._kubelet.faults.silent_nodes

    def _waiting(self, reason: str, message: str) -> None:
        state = {"reason": reason, **({"message": message} if message else {})}
        self._state({"waiting": state}, phase="Pending", ready=False)

    def _state(self, state: Json, *, phase: str, ready: bool) -> None:
        status = {
            "name": self._container["name"],
            "state": state,
            "ready": ready,
            "restartCount": 0,
            "image": self._container["image"],
            "imageID": "" if "waiting" in state else "sha256:" + "0" * 64,
            "started": "running" in state,
        }
        self._status(containerStatuses=[status], phase=phase)

    def _status(self, **values: Any) -> None:
        self._kubelet.store.change(
            "pods", self._namespace, self._pod_name, lambda pod: pod["status"].update(values)
        )


def pods_of(store: Store, name: str) -> Iterator[Json]:
    """The pods of the Job of that name."""
    for pod in store.everywhere("pods"):
        if any(ref["name"] == name for ref in pod["metadata"].get("ownerReferences") or ()):
            yield pod
