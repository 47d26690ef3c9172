"""A Docker engine of the test's own: one that may be stopped, killed and started again.

It has a folder, a socket, a containerd and a bridge of its own, so it touches nothing of the engine of
this machine. (An engine without a bridge removes ``docker0`` when it starts, whoever made that.) It needs
root, ``ip`` and ``dockerd``, as the packages of the tests' services have it.
"""

from __future__ import annotations

import os
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing, suppress
from pathlib import Path

import docker
from docker.errors import DockerException

from scheduler_project.kernel.clock import monotonic
from tests.images import busybox_image

STARTS_WITHIN_S = 30.0
ENDS_WITHIN_S = 30.0


class OwnEngine:
    """``disk_bytes``: the size of the file system that its data is on. ``close`` removes all of it."""

    def __init__(self, *, disk_bytes: int = 0) -> None:
        # Not pytest's folder: containerd's sockets below it must be short.
        self.folder = Path(tempfile.mkdtemp(prefix="punctual-engine-"))
        self._daemon: subprocess.Popen[bytes] | None = None
        self._bridge = f"punctual{secrets.token_hex(3)}"
        subprocess.run(["ip", "link", "add", self._bridge, "type", "bridge"], check=True)
        if disk_bytes:
            self._mount_data(disk_bytes)
        self.start()

    @property
    def host(self) -> str:
        return f"unix://{self.folder}/docker.sock"

    def start(self, *options: str) -> None:
        """Start it, with more ``options`` of dockerd, on what is in the folder; returns when it answers."""
        command = [
            "dockerd",
            f"--data-root={self.folder}/data",
            f"--exec-root={self.folder}/run",
            f"--pidfile={self.folder}/pid",
            f"--host={self.host}",
            f"--bridge={self._bridge}",
            "--ip-forward=false",
            "--iptables=false",
            "--ip-masq=false",
            "--shutdown-timeout=2",
            *options,
        ]
        with (self.folder / "log").open("ab") as log:
            self._daemon = subprocess.Popen(command, stdout=log, stderr=log, start_new_session=True)
        deadline = monotonic() + STARTS_WITHIN_S
        while not self._answers():
            assert monotonic() < deadline, (self.folder / "log").read_text()[-2000:]
            time.sleep(0.05)

    def stop(self) -> None:
        """As an administrator does it: SIGTERM."""
        self._end(signal.SIGTERM)

    def kill(self) -> None:
        """SIGKILL, with its containerd; the containers live on until it is started again."""
        self._end(signal.SIGKILL)
        for stale in ("pid", "run/containerd/containerd.pid"):
            (self.folder / stale).unlink(missing_ok=True)

    def load(self) -> str:
        """The small image, from the engine of this machine."""
        name = busybox_image()
        with closing(docker.APIClient(version="auto")) as source, closing(self._api()) as target:
            target.load_image(b"".join(source.get_image(name)))
        return name

    def close(self) -> None:
        self._remove_containers()
        self.stop()
        for pid in _living_below(self.folder):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        deadline = monotonic() + ENDS_WITHIN_S
        while _living_below(self.folder):
            assert monotonic() < deadline, "the engine's processes do not end"
            time.sleep(0.05)
        for mount in sorted(_mounts_below(self.folder), reverse=True):
            subprocess.run(["umount", "--lazy", mount], check=True)
        subprocess.run(["ip", "link", "delete", self._bridge], check=True)
        shutil.rmtree(self.folder)

    def _mount_data(self, disk_bytes: int) -> None:
        disk, data = self.folder / "disk", self.folder / "data"
        disk.touch()
        os.truncate(disk, disk_bytes)
        data.mkdir()
        subprocess.run(["mkfs.ext4", "-q", disk], check=True)
        subprocess.run(["mount", "-o", "loop", disk, data], check=True)

    def _remove_containers(self) -> None:
        if not self._answers():
            self.start()
        with closing(self._api()) as api:
            for container in api.containers(all=True, quiet=True):
                api.remove_container(container, force=True)

    def _api(self) -> docker.APIClient:
        return docker.APIClient(base_url=self.host, version="auto")

    def _answers(self) -> bool:
        with socket.socket(socket.AF_UNIX) as knocking:
            if self._daemon is None or knocking.connect_ex(f"{self.folder}/docker.sock"):
                return False
        with suppress(DockerException), closing(self._api()) as api:
            return bool(api.ping())
        return False

    def _end(self, number: signal.Signals) -> None:
        daemon, self._daemon = self._daemon, None
        if daemon is not None:
            daemon.send_signal(number)
            daemon.wait(ENDS_WITHIN_S)


class OwnSshServer:
    """OpenSSH's server on a port of its own, with keys of its own, for the user that runs the tests."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        for key in ("host", "client"):
            run = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(folder / key)]
            subprocess.run(run, check=True)
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port = free.getsockname()[1]
        Path("/run/sshd").mkdir(exist_ok=True)  # where it keeps nothing, but wants to
        options = {
            "HostKey": folder / "host",
            "AuthorizedKeysFile": folder / "client.pub",
            "PidFile": "none",
            "UsePAM": "no",
            "StrictModes": "no",
            "PermitRootLogin": "yes",
            "ListenAddress": "127.0.0.1",
        }
        words = [word for name, value in options.items() for word in ("-o", f"{name}={value}")]
        self._log = (folder / "sshd.log").open("wb")
        self._server = subprocess.Popen(
            ["/usr/sbin/sshd", "-D", "-e", "-f", "/dev/null", "-p", str(self.port), *words], stderr=self._log
        )
        deadline = monotonic() + STARTS_WITHIN_S
        while not self._listens():
            assert monotonic() < deadline, (folder / "sshd.log").read_text()
            time.sleep(0.02)

    def _listens(self) -> bool:
        with socket.socket() as knocking:
            return knocking.connect_ex(("127.0.0.1", self.port)) == 0

    def program(self) -> Path:
        """A folder to put in front of PATH: its ``ssh`` knows the keys of this server."""
        bin_folder = self._folder / "bin"
        bin_folder.mkdir()
        (self._folder / "known").write_text(
            f"[127.0.0.1]:{self.port} {(self._folder / 'host.pub').read_text()}"
        )
        keys = f"-F none -i {self._folder}/client -o UserKnownHostsFile={self._folder}/known"
        (bin_folder / "ssh").write_text(f'#!/bin/sh\nexec {shutil.which("ssh")} {keys} "$@"\n')
        (bin_folder / "ssh").chmod(0o755)
        return bin_folder

    def end_connections(self) -> None:
        """As when a network or a host goes away for a moment."""
        for path in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                parent = (path / "stat").read_text().rpartition(")")[2].split()[1]
                if int(parent) == self._server.pid:
                    os.kill(int(path.name), signal.SIGKILL)

    def close(self) -> None:
        self.end_connections()
        self._server.terminate()
        self._server.wait(ENDS_WITHIN_S)
        self._log.close()


def certificates(folder: Path) -> list[str]:
    """A worker's and a server's certificates in ``folder``; the options of dockerd that go with them."""
    authority = ["-CA", f"{folder}/ca.pem", "-CAkey", f"{folder}/ca-key.pem"]
    authority += ["-addext", "subjectAltName=IP:127.0.0.1", "-addext", "basicConstraints=critical,CA:FALSE"]
    for key, certificate, more in (
        ("ca-key.pem", "ca.pem", []),
        ("server-key.pem", "server.pem", authority),
        ("key.pem", "cert.pem", authority),
    ):
        request = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
        request += ["-nodes", "-days", "2", "-subj", f"/CN={certificate}", "-keyout", f"{folder}/{key}"]
        subprocess.run([*request, "-out", f"{folder}/{certificate}", *more], check=True, capture_output=True)
    return [
        "--tlsverify",
        f"--tlscacert={folder}/ca.pem",
        f"--tlscert={folder}/server.pem",
        f"--tlskey={folder}/server-key.pem",
    ]


def own_engine_trouble() -> str:
    """Why no such engine can be made here, or empty."""
    if os.geteuid() != 0:
        return "a Docker engine of the test's own needs root"
    return "" if shutil.which("dockerd") else "there is no dockerd on this machine"


def _living_below(folder: Path) -> list[int]:
    """Processes with that folder in their command: dockerd, containerd, shims."""
    found = []
    for path in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(folder).encode() in (path / "cmdline").read_bytes() and int(path.name) != os.getpid():
                found.append(int(path.name))
    return found


def _mounts_below(folder: Path) -> Sequence[str]:
    mounts = [line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines()]
    return [mount for mount in mounts if mount.startswith(f"{folder}/")]
