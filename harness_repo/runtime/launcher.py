"""Stands between a worker and an agent's command: starts it under its limits, and leaves nothing of it behind.

    python -I -S launcher.py MEMORY_BYTES PARENT_PID COMMAND [ARGUMENT ...]

It is the command's parent, so that what the command may read of its parent is a clean environment. Processes that the
command leaves behind become its children; all of them are killed when the command ends, when SIGTERM comes, and when
the worker dies. It ends as the command did: with its exit code, or by its signal; 127 when it cannot be started.
Imports nothing of the project. Elsewhere than on Linux it cannot see more than the command itself.
"""

import ctypes
import os
import resource
import signal
import sys
import time

CANNOT_START = 127
# Of prctl, in linux/prctl.h.
_SET_PARENT_DEATH_SIGNAL = 1
_SET_DUMPABLE = 4
_SET_CHILD_SUBREAPER = 36

_WATCHED = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
# What cannot be killed in this time never will be.
_KILL_SECONDS = 5.0


def main() -> None:
    """Start the command, wait for it, end all that is left of it, and end as it did."""
    memory, worker, command = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:]
    signal.pthread_sigmask(signal.SIG_BLOCK, _WATCHED)
    _control(_SET_PARENT_DEATH_SIGNAL, signal.SIGTERM)
    _control(_SET_CHILD_SUBREAPER, 1)
    # Its memory and environment are nothing for the command to read.
    _control(_SET_DUMPABLE, 0)
    # The worker may have gone before the kernel was told.
    if os.getppid() != worker:
        sys.exit(CANNOT_START)
    launcher = os.getpid()
    child = os.fork()
    if child == 0:
        _become(command, memory, launcher)
    status = _wait_for(child)
    status = _end_all(child, status)
    _end_as(status)


def _become(command: list[str], memory: int, launcher: int) -> None:
    """In the child: a session of its own, the limits, then the command. Never returns."""
    try:
        os.setsid()
        _control(_SET_PARENT_DEATH_SIGNAL, signal.SIGKILL)
        if os.getppid() != launcher:
            os._exit(CANNOT_START)
        # Data and not address space: Node, Java and Go reserve far more of that than they use.
        _limit(resource.RLIMIT_DATA, memory)
        _limit(resource.RLIMIT_CORE, 0)
        # The interpreter ignores these, and the command would inherit it.
        signal.signal(signal.SIGPIPE, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.execvp(command[0], command)  # noqa: S606  the command is the operator's
    except OSError as failure:
        os.write(2, f"cannot start {command[0]}: {failure.strerror}\n".encode("utf-8", "replace"))
    finally:
        os._exit(CANNOT_START)


def _wait_for(child: int) -> int | None:
    """The child's wait status; None when it is to be ended before its time."""
    while True:
        if signal.sigwait(_WATCHED) != signal.SIGCHLD:
            return None
        ended = _reap()
        if child in ended:
            return ended[child]


def _end_all(child: int, status: int | None) -> int | None:
    """Kill every process that comes from the child; the child's wait status, if it is known."""
    until = time.monotonic() + _KILL_SECONDS
    while time.monotonic() < until:
        for process in {*_descendants(), *(() if status is not None else (child,))}:
            _kill(process)
        try:
            ended = _reap()
        except ChildProcessError:
            break
        status = ended.get(child, status)
        time.sleep(0.002)
    return status


def _reap() -> dict[int, int]:
    """Process -> wait status of the children that have ended; ChildProcessError when there is no child at all."""
    ended: dict[int, int] = {}
    while True:
        try:
            process, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            if ended:
                return ended
            raise
        if process == 0:
            return ended
        ended[process] = status


def _descendants() -> list[int]:
    """All processes under this one, as far as the system tells."""
    children: dict[int, list[int]] = {}
    try:
        processes = [int(name) for name in os.listdir("/proc") if name.isdigit()]  # noqa: PTH208  starts sooner
    except OSError:
        return []
    for process in processes:
        try:
            with open(f"/proc/{process}/stat", "rb") as stat:  # noqa: PTH123
                # The name before it stands in brackets, and may hold anything.
                parent = int(stat.read().rpartition(b")")[2].split()[1])
        # It has ended meanwhile.
        except (OSError, ValueError, IndexError):
            continue
        children.setdefault(parent, []).append(process)
    found = list(children.get(os.getpid(), ()))
    for process in found:
        found += children.get(process, ())
    return found


def _kill(process: int) -> None:
    try:
        os.kill(process, signal.SIGKILL)
    except OSError:
        return


def _end_as(status: int | None) -> None:
    """End as a wait status says; as killed where it is not known."""
    if status is not None and os.WIFEXITED(status):
        os._exit(os.WEXITSTATUS(status))
    number = os.WTERMSIG(status) if status is not None and os.WIFSIGNALED(status) else signal.SIGKILL
    _limit(resource.RLIMIT_CORE, 0)
    if number not in (signal.SIGKILL, signal.SIGSTOP):
        signal.signal(number, signal.SIG_DFL)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, [number])
    os.kill(os.getpid(), number)
    # It did not end by it.
    os._exit(128 + number)


def _limit(what: int, most: int) -> None:
    hard = resource.getrlimit(what)[1]
    most = most if hard == resource.RLIM_INFINITY else min(most, hard)
    resource.setrlimit(what, (most, most))


def _control(what: int, value: int) -> None:
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(what, value, 0, 0, 0)


if __name__ == "__main__":
    main()
