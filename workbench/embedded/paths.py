"""Where the embedded servers keep their things. Standard library only: settings import this."""

import hashlib
import os
import tempfile
from pathlib import Path

# sockaddr_un holds 108 bytes with the closing NUL (unix(7)).
MAX_SOCKET_PATH = 107
LONGEST_SOCKET_NAME = "postgres/.s.PGSQL.5432.lock"
# They separate hosts for libpq, and parts of a URL.
SPECIAL_IN_ADDRESSES = b",;%?#"


def var_directory() -> Path:
    """Return the folder of everything this installation owns; `WORKBENCH_VAR` moves it."""
    configured = os.environ.get("WORKBENCH_VAR")
    if configured:
        return Path(configured).resolve()
    return Path(__file__).resolve().parent.parent.parent / "var"


def run_directory(var: Path) -> Path:
    """Return the folder of the sockets: `var`/run, or one keyed by it under the temporary folder when that won't do.

    Raises OSError when no folder is short and plain enough for a unix socket.
    """
    key = f"workbench-{os.getuid()}-{hashlib.sha256(os.fsencode(var)).hexdigest()[:16]}"
    # The last resort is fixed: TMPDIR may be long itself. `make_folder` refuses what someone else made there.
    candidates = (var / "run", Path(tempfile.gettempdir()) / key, Path("/tmp") / key)  # noqa: S108
    for directory in candidates:
        if can_hold_sockets(directory):
            return directory
    raise OSError(f"no folder is short and plain enough for a unix socket: {candidates[0]}")


def can_hold_sockets(directory: Path) -> bool:
    """Whether a path fits a unix socket, and means the same in libpq's list of hosts and in the broker's URL."""
    path = os.fsencode(directory / LONGEST_SOCKET_NAME)
    return len(path) <= MAX_SOCKET_PATH and not set(path) & set(SPECIAL_IN_ADDRESSES)


def database_socket_directory(var: Path) -> Path:
    """Return what libpq takes as the host of the embedded database."""
    return run_directory(var) / "postgres"


def broker_socket(var: Path) -> Path:
    """Return the unix socket of the embedded broker."""
    return run_directory(var) / "valkey" / "valkey.sock"
