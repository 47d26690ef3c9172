"""Run as a file: become the command that follows, on a leash.

    python -S leash.py PARENT COMMAND...

In a group of its own, so that Ctrl-C reaches the process PARENT alone, and killed by the kernel (Linux) when
PARENT is gone, however it ended. It imports nothing of Punctual: it is there for milliseconds.
"""

import ctypes
import os
import signal
import sys

_PR_SET_PDEATHSIG = 1


def main(parent: int, command: list[str]) -> None:
    os.setpgid(0, 0)
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        sys.exit(1)
    os.execv(command[0], command)  # noqa: S606 -- no shell


if __name__ == "__main__":
    main(int(sys.argv[1]), sys.argv[2:])
