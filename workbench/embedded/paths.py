"""Where the embedded servers keep their things. Standard library only: settings import this."""

import hashlib
import os
import tempfile
from pathlib import Path

# sockaddr_un holds 108 bytes with the closing NUL (unix(7)).
MAX_SOCKET_PATH = 107
LONGEST_SOCKET_NAME = "postgres/.s.PGSQL.5432.lock"


def var_directory() -> Path:
    """Return the folder of everything this installation owns; `WORKBENCH_VAR` moves it."""
    configured = os.environ.get("WORKBENCH_VAR")
    if configured:
        return Path(configured).resolve()
    return Path(__file__).resolve().parent.parent.parent / "var"


def run_directory(var: Path) -> Path:
    """Return the folder of the sockets: `var`/run, or one keyed by it under the temporary folder when that is too long.

    Raises OSError when no folder is short enough for a unix socket.
    """
    key = f"workbench-{os.getuid()}-{hashlib.sha256(os.fsencode(var)).hexdigest()[:16]}"
    # The last resort is fixed: TMPDIR may be long itself. `make_folder` refuses what someone else made there.
    candidates = (var / "run", Path(tempfile.gettempdir()) / key, Path("/tmp") / key)  # noqa: S108
    for directory in candidates:
        if len(os.fsencode(directory / LONGEST_SOCKET_NAME)) <= MAX_SOCKET_PATH:
            return directory
    raise OSError(f"no folder is short enough for a unix socket: {candidates[0]}")


def database_socket_directory(var: Path) -> Path:
    """Return what libpq takes as the host of the embedded database."""
    return run_directory(var) / "postgres"


def broker_socket(var: Path) -> Path:
    """Return the unix socket of the embedded broker."""
    return run_directory(var) / "valkey" / "valkey.sock"
