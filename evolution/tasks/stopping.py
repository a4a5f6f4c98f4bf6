"""Whether this worker is about to end: its main process says so, and the tasks in its pool look."""

import mmap

# Shared with the processes that are forked from this one.
_flag = mmap.mmap(-1, 1)


def ask_to_stop() -> None:
    """Ask the tasks in all processes of this worker to come to an end."""
    _flag[0] = 1


def is_stopping() -> bool:
    """Whether the worker ends."""
    return _flag[0] == 1
