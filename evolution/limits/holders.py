"""Names of processes that hold something in the database, and whether such a process is known to be gone.

A lease says when something is free again whatever happened. A process of this very machine that is not there any more
need not be waited for: workers are started again within a second of being killed.
"""

import hashlib
import os
import secrets
import socket
from functools import lru_cache
from pathlib import Path

_PROC = Path("/proc")
# Before the name of a process: what is of another make says nothing.
_FORMAT = "p1"


def name_process() -> str:
    """A name of this process, unlike that of any other on any machine at any time; at most 100 characters."""
    pid = os.getpid()
    host = socket.gethostname().replace(":", "-")[:30]
    return f"{host}:{_FORMAT}:{_machine()}:{pid}:{_started(pid)}:{secrets.token_hex(4)}"


def is_gone(name: str) -> bool:
    """Whether the process of that name is known to have ended; False for one of another machine or container."""
    parts = name.split(":")
    if len(parts) != 6 or parts[1] != _FORMAT or not parts[2] or parts[2] != _machine():
        return False
    return not parts[3].isdecimal() or _started(int(parts[3])) != parts[4]


@lru_cache
def _machine() -> str:
    """This boot of this machine and its numbering of processes, which containers have of their own; "" if unknown."""
    try:
        boot = (_PROC / "sys/kernel/random/boot_id").read_text()
        numbering = (_PROC / "self/ns/pid").readlink()
    except OSError:
        return ""
    return hashlib.blake2b(f"{boot}{numbering}".encode(), digest_size=8).hexdigest()


def _started(pid: int) -> str:
    """When a process was started, in the kernel's ticks; "" when it is not there, or only waits to be buried."""
    try:
        stat = (_PROC / str(pid) / "stat").read_text()
    except OSError:
        return ""
    # The program's name may hold anything, and stands in brackets.
    state, *numbers = stat.rpartition(")")[2].split()
    return "" if state in "ZX" else numbers[18]
