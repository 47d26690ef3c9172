"""What one start has to itself: the folder, its lock, and the port. Each refusal is one line."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import os
import pwd
import socket
import stat
import tempfile
from pathlib import Path

from scheduler_project.kernel.errors import PunctualError

LOCK = "standalone.lock"
ADDRESS = "127.0.0.1"
LONGEST_SOCKET_PATH = 90  # sun_path is 104 bytes on macOS, 108 on Linux; the file's name comes on top


class Refused(PunctualError):
    """It cannot start here."""


def claim_home(home: Path) -> None:
    """Make the folder where it is missing, for its owner alone. Refused where it cannot be used."""
    try:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=home):
            pass
    except (FileExistsError, NotADirectoryError):
        raise Refused(f"PUNCTUAL_HOME: {home} is no folder. Set PUNCTUAL_HOME to another one.") from None
    except OSError as error:
        raise Refused(
            f"PUNCTUAL_HOME: {home} cannot be written ({error.strerror}). Set PUNCTUAL_HOME."
        ) from None


def claim_lock(home: Path) -> int:
    """Hold the folder until this process ends. Returns the descriptor; Refused where another holds it."""
    descriptor = os.open(home / LOCK, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = os.read(descriptor, 20).decode().strip()
        os.close(descriptor)
        raise Refused(
            f"Punctual already runs on {home} (process {holder or 'unknown'})."
            " Stop it, or set PUNCTUAL_HOME and PUNCTUAL_PORT to others."
        ) from None
    os.truncate(descriptor, 0)
    os.write(descriptor, f"{os.getpid()}\n".encode())
    return descriptor


def claim_port(port: int) -> socket.socket:
    """The listening socket of the web server. Refused where the port is taken.

    It listens at once: two sockets that are only bound can share an address unnoticed. Who
    connects before the web server is up waits until it is.
    """
    bound = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind((ADDRESS, port))
        bound.listen(128)
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise Refused(
                f"PUNCTUAL_PORT: port {port} of {ADDRESS} is in use by another program. Set PUNCTUAL_PORT."
            ) from None
        raise Refused(
            f"PUNCTUAL_PORT: port {port} cannot be used ({error.strerror}). Set PUNCTUAL_PORT."
        ) from None
    return bound


def socket_folder(home: Path, name: str) -> Path:
    """A folder for the Unix sockets of a part that only the owner can enter.

    In ``home`` where that leaves room for a socket's path, otherwise in the folder for
    temporary files under a name that follows from ``home``.
    """
    folder = home / name
    if len(os.fsencode(folder)) > LONGEST_SOCKET_PATH:
        digest = hashlib.blake2b(os.fsencode(home), digest_size=6).hexdigest()
        folder = Path(tempfile.gettempdir()) / f"punctual-{os.geteuid()}-{digest}-{name}"
    folder.mkdir(mode=0o700, exist_ok=True)
    found = folder.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_mode & 0o077 or found.st_uid not in _trusted():
        raise Refused(f"{folder} is not ours alone. Remove it, or set PUNCTUAL_HOME to a shorter path.")
    return folder


def _trusted() -> set[int]:
    """Whose folders may be used: our own; root's servers may run as nobody (see server_user.py)."""
    return {os.geteuid()} if os.geteuid() else {0, pwd.getpwnam("nobody").pw_uid}
