"""A small image for tests, made on the spot: no registry is needed.

The root file system holds one static busybox (Debian's package busybox-static) and a link for
each of its commands; it goes to the engine as a tar file, which is what `docker import` does.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import tarfile
from pathlib import Path

import docker
from docker.errors import ImageNotFound
from docker.utils import kwargs_from_env

REPOSITORY = "punctual-test/busybox"
FOLDERS = ("bin", "etc", "tmp", "proc", "sys", "dev", "home")
FILES = {
    "etc/passwd": b"root:x:0:0:root:/:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/sh\n",
    "etc/group": b"root:x:0:\nnogroup:x:65534:\n",
}


def busybox_image() -> str:
    """The name of the image on the engine, which is made there first if it is missing.

    Raises RuntimeError where there is no static busybox on this machine.
    """
    busybox = _static_busybox()
    name = f"{REPOSITORY}:{_version(busybox)}"
    client = docker.APIClient(**kwargs_from_env(), version="auto")
    try:
        client.inspect_image(name)
    except ImageNotFound:
        repository, tag = name.split(":")
        client.import_image_from_data(
            root_file_system(), repository=repository, tag=tag, changes=["ENV PATH=/bin"]
        )
    finally:
        client.close()
    return name


def _static_busybox() -> Path:
    found = shutil.which("busybox", path="/bin:/usr/bin")
    if found is None:
        raise RuntimeError("no busybox on this machine: apt-get install busybox-static")
    if b"ld-linux" in Path(found).read_bytes()[:4096]:
        raise RuntimeError(f"{found} is not static: apt-get install busybox-static")
    return Path(found)


def _version(busybox: Path) -> str:
    first_line = subprocess.run([busybox], capture_output=True, text=True, check=True).stdout.splitlines()[0]
    return first_line.split()[1].removeprefix("v")


def root_file_system() -> bytes:
    """A tar file of it; always the same bytes."""
    busybox = _static_busybox()
    commands = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as tar:
        for folder in FOLDERS:
            tar.addfile(_entry(folder, tarfile.DIRTYPE, 0o1777 if folder == "tmp" else 0o755))
        _add_file(tar, "bin/busybox", busybox.read_bytes(), 0o755)
        for name, content in FILES.items():
            _add_file(tar, name, content, 0o644)
        for command in sorted(set(commands) - {"busybox"}):
            link = _entry(f"bin/{command}", tarfile.SYMTYPE, 0o777)
            link.linkname = "busybox"
            tar.addfile(link)
    return buffer.getvalue()


def _entry(name: str, kind: bytes, mode: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.type = kind
    entry.mode = mode
    return entry


def _add_file(tar: tarfile.TarFile, name: str, content: bytes, mode: int) -> None:
    entry = _entry(name, tarfile.REGTYPE, mode)
    entry.size = len(content)
    tar.addfile(entry, io.BytesIO(content))
