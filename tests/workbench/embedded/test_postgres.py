import os
import shutil
import signal
from pathlib import Path

import psycopg
import pytest

from workbench.embedded.postgres import connection_string, is_answering, postgres_server, quote_in_list
from workbench.embedded.shared import ServerError


def query(sockets: Path, statement: str) -> str:
    with psycopg.connect(connection_string(sockets, "workbench"), autocommit=True) as connection:
        row = connection.execute(statement.encode()).fetchone()
    return "" if row is None else str(row[0])


def execute(sockets: Path, statement: str) -> None:
    with psycopg.connect(connection_string(sockets, "workbench"), autocommit=True) as connection:
        connection.execute(statement.encode())


def test_it_is_version_18_in_utf8_with_the_builtin_locale(var: Path) -> None:
    server = postgres_server(var, durable=False)
    with server.in_use():
        assert query(server.spec.socket_folder, "SHOW server_version").startswith("18")
        assert query(server.spec.socket_folder, "SELECT datlocale FROM pg_database LIMIT 1") == "C.UTF-8"
        assert query(server.spec.socket_folder, "SELECT upper('ä')") == "Ä"


def test_the_last_user_stops_it_and_the_data_stays(var: Path) -> None:
    first, second = postgres_server(var), postgres_server(var)
    first.acquire()
    execute(first.spec.socket_folder, "CREATE TABLE kept AS SELECT 42 AS answer")
    second.acquire()
    first.release()
    assert query(second.spec.socket_folder, "SELECT answer FROM kept") == "42"
    second.release()
    assert not is_answering(first.spec.socket_folder)
    with first.in_use():
        assert query(first.spec.socket_folder, "SELECT answer FROM kept") == "42"


def test_the_fallback_without_namespaces_works(var: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root needs another user")
    # Another user must be able to reach the folder; a temporary folder is private.
    var.chmod(0o711)
    server = postgres_server(var, durable=False, forbid_namespace=True)
    if not can_nobody_run(server.spec.command[0]):
        pytest.skip("this environment lies in a folder that other users cannot enter")
    with server.in_use():
        assert query(server.spec.socket_folder, "SELECT 1") == "1"
    assert (var / "pgdata").owner() == "nobody"


def can_nobody_run(program: str) -> bool:
    return all(parent.stat().st_mode & 0o001 for parent in Path(program).parents)


def test_it_comes_back_after_a_hard_kill_of_server_and_keeper(var: Path) -> None:
    server = postgres_server(var)
    server.acquire()
    execute(server.spec.socket_folder, "CREATE TABLE kept AS SELECT 7 AS answer")
    postmaster = int((var / "pgdata" / "postmaster.pid").read_text().split()[0])
    os.kill(int(server.lock_file("keeper").read_text()), signal.SIGKILL)
    os.kill(postmaster, signal.SIGKILL)
    server.revive()
    assert query(server.spec.socket_folder, "SELECT answer FROM kept") == "7"
    server.release()


def test_a_pid_file_that_names_another_program_does_not_stop_it(var: Path) -> None:
    server = postgres_server(var)
    with server.in_use():
        lines = (var / "pgdata" / "postmaster.pid").read_text()
    pid, rest = lines.split("\n", 1)
    assert pid.isdigit()
    (var / "pgdata" / "postmaster.pid").write_text(f"{os.getpid()}\n{rest}")
    with server.in_use():
        assert query(server.spec.socket_folder, "SELECT 1") == "1"


def test_a_half_made_data_folder_is_made_again(var: Path) -> None:
    (var / "pgdata.draft").mkdir()
    (var / "pgdata.draft" / "PG_VERSION").write_text("18")
    server = postgres_server(var, durable=False)
    with server.in_use():
        assert is_answering(server.spec.socket_folder)
    assert not (var / "pgdata.draft").exists()


def test_what_went_wrong_is_said(var: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    server = postgres_server(var, durable=False)
    shutil.copytree(Path(__file__).parent, var / "pgdata")
    (var / "pgdata" / "PG_VERSION").touch()
    monkeypatch.setattr("workbench.embedded.shared.START_SECONDS", 2)
    with pytest.raises(ServerError, match="could not access the server configuration"):
        server.acquire()
    assert server.users is None


@pytest.mark.parametrize("content", [[], ["notes.txt"]])
def test_a_data_folder_of_nobody_is_said_with_what_to_do(var: Path, content: list[str]) -> None:
    (var / "pgdata").mkdir()
    for name in content:
        (var / "pgdata" / name).touch()
    server = postgres_server(var, durable=False)
    with pytest.raises(ServerError, match=r"holds no PostgreSQL database: .* move it away"):
        server.acquire()
    assert [path.name for path in (var / "pgdata").iterdir()] == content
    assert not server.is_running()


def test_it_runs_below_a_folder_whose_name_is_full_of_signs(var: Path) -> None:
    server = postgres_server(var / "a,b; 'c' \"d\" %20", durable=False)
    with server.in_use():
        assert query(server.spec.socket_folder, "SELECT 1") == "1"


def test_an_item_of_a_list_is_quoted_as_postgresql_reads_it() -> None:
    assert quote_in_list('/a, "b"') == '"/a, ""b"""'
