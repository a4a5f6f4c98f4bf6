"""Started in place of an agent's command: limits itself, then becomes the command. Imports nothing of the project.

    python -I -S launcher.py MEMORY_BYTES PARENT_PID COMMAND [ARGUMENT ...]

Exit code 127 when the command cannot be started.
"""

import ctypes
import os
import resource
import signal
import sys

CANNOT_START = 127
# Of prctl, in linux/prctl.h.
_SET_PARENT_DEATH_SIGNAL = 1


def main() -> None:
    """Set the limits and become the command."""
    memory, parent, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    # Data and not address space: Node, Java and Go reserve far more of that than they use.
    _limit(resource.RLIMIT_DATA, memory)
    _limit(resource.RLIMIT_CORE, 0)
    _end_with(parent)
    # The interpreter ignores these, and the command would inherit it.
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    try:
        os.execvp(command[0], command)  # noqa: S606  the command is the operator's
    except OSError as failure:
        sys.stderr.write(f"cannot start {command[0]}: {failure.strerror}\n")
        sys.exit(CANNOT_START)


def _limit(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def _end_with(parent: int) -> None:
    """Have the kernel end this process when a killed worker leaves it behind; elsewhere than on Linux it goes on."""
    if sys.platform != "linux":
        return
    ctypes.CDLL(None).prctl(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL, 0, 0, 0)
    # It may have gone before the kernel was told.
    if os.getppid() != parent:
        sys.exit(CANNOT_START)


if __name__ == "__main__":
    main()
