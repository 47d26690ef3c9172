"""As whom PostgreSQL runs: it refuses to be root.

Not root: as who we are. Root: in a user namespace in which root's id reads as another, so
that no account is made, no file changes hands and no folder is opened to others. Where
that is forbidden (as in a container), as ``nobody``, to whom its folders are given; and
where a folder above them is closed to ``nobody``, with the one capability to pass it.
"""

from __future__ import annotations

import ctypes
import os
import pwd
import signal
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from scheduler_project.standalone.children import die_with
from scheduler_project.standalone.claims import Refused

CLONE_NEWUSER = 0x10000000
CAP_DAC_OVERRIDE = 1
CAPABILITY_VERSION_3 = 0x20080522
PR_SET_KEEPCAPS = 8
PR_CAP_AMBIENT = 47
PR_CAP_AMBIENT_RAISE = 2


@dataclass(frozen=True, slots=True)
class ServerUser:
    """``adopt`` is called in the child before it becomes the server; ``uid`` owns the server's folders."""

    uid: int
    gid: int
    adopt: Callable[[], None]

    def take(self, folder: Path) -> None:
        """Make ``folder`` and all in it the server's, where it is not."""
        if os.geteuid() != 0 or folder.stat().st_uid == self.uid:
            return
        for parent, folders, files in os.walk(folder):
            for name in [".", *folders, *files]:
                os.chown(Path(parent) / name, self.uid, self.gid, follow_symlinks=False)


def server_user(reached: list[Path]) -> ServerUser:
    """The user for a server that has to reach the folders ``reached``. Refused where there is none."""
    if os.geteuid() != 0:
        return ServerUser(os.geteuid(), os.getegid(), lambda: None)
    if sys.platform == "linux" and _can(enter_namespace):
        return ServerUser(0, 0, enter_namespace)
    for with_passage in (False, True):
        if _can(partial(_arrive, with_passage, reached)):
            nobody = pwd.getpwnam("nobody")
            return ServerUser(nobody.pw_uid, nobody.pw_gid, partial(_adopt, os.getpid(), with_passage))
    raise Refused(
        "PostgreSQL does not run as root, and here root can neither make a user namespace nor become"
        f" 'nobody' with access to {reached[0]}. Run as another user, or give DATABASE_URL."
    )


def enter_namespace() -> None:
    """From here on, root's user and group read as those of the first account that is not root's."""
    account = next(entry for entry in pwd.getpwall() if 0 < entry.pw_uid < 65534)
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWUSER) != 0:
        raise OSError(ctypes.get_errno(), "unshare")
    Path("/proc/self/setgroups").write_text("deny", encoding="ascii")
    Path("/proc/self/uid_map").write_text(f"{account.pw_uid} 0 1", encoding="ascii")
    Path("/proc/self/gid_map").write_text(f"{account.pw_gid or account.pw_uid} 0 1", encoding="ascii")


def become_nobody(*, with_passage: bool) -> None:
    """Give up root for good, keeping at most the capability to pass closed folders."""
    account = pwd.getpwnam("nobody")
    libc = ctypes.CDLL(None, use_errno=True)
    if with_passage:
        libc.prctl(PR_SET_KEEPCAPS, 1, 0, 0, 0)
    os.setgroups([])
    os.setresgid(account.pw_gid, account.pw_gid, account.pw_gid)
    os.setresuid(account.pw_uid, account.pw_uid, account.pw_uid)
    if with_passage:
        _keep_only(libc, CAP_DAC_OVERRIDE)


def _keep_only(libc: ctypes.CDLL, capability: int) -> None:
    """Effective, permitted, inheritable and ambient: ``capability`` alone, so that exec keeps it."""
    header = (ctypes.c_uint32 * 2)(CAPABILITY_VERSION_3, 0)
    sets = (ctypes.c_uint32 * 6)(*[1 << capability] * 3, 0, 0, 0)
    if libc.capset(ctypes.byref(header), ctypes.byref(sets)) != 0:
        raise OSError(ctypes.get_errno(), "capset")
    if libc.prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_RAISE, capability, 0, 0) != 0:
        raise OSError(ctypes.get_errno(), "prctl")


def _adopt(supervisor: int, with_passage: bool) -> None:
    become_nobody(with_passage=with_passage)
    die_with(supervisor, signal.SIGINT)  # a change of user clears it


def _arrive(with_passage: bool, reached: list[Path]) -> None:
    become_nobody(with_passage=with_passage)
    for path in reached:
        path.stat()
        os.chdir(path if path.is_dir() else path.parent)


def _can(attempt: Callable[[], None]) -> bool:
    """Whether ``attempt`` works, tried in a process of its own."""
    pid = os.fork()
    if pid == 0:
        try:
            attempt()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
