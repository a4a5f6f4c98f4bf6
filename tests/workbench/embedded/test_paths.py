import os
import tempfile
from pathlib import Path

import pytest

from workbench.embedded.paths import broker_socket, database_socket_directory, run_directory, var_directory


def test_sockets_stay_in_var_when_the_path_is_short() -> None:
    assert database_socket_directory(Path("/srv/wb/var")) == Path("/srv/wb/var/run/postgres")
    assert broker_socket(Path("/srv/wb/var")) == Path("/srv/wb/var/run/valkey/valkey.sock")


def test_a_long_path_gets_a_folder_of_its_own_elsewhere() -> None:
    first, second = (run_directory(Path("/srv", "x" * 120, name)) for name in "ab")
    assert first != second
    assert len(os.fsencode(first / "postgres" / ".s.PGSQL.5432")) < 108


def test_chinese_folder_names_count_in_bytes() -> None:
    assert len("工" * 40) < 107
    assert run_directory(Path("/srv", "工" * 40)).parent != Path("/srv", "工" * 40)


def test_a_long_temporary_folder_is_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tempfile, "tempdir", "/srv/" + "t" * 120)
    assert run_directory(Path("/srv", "x" * 120)).parent == Path("/tmp")  # noqa: S108  it is what is asserted


def test_var_can_be_moved(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("WORKBENCH_VAR", str(tmp_path))
    assert var_directory() == tmp_path.resolve()


@pytest.mark.parametrize("name", ["a,b", "a%20b", "a;b", "a#b", "a?b"])
def test_a_path_that_would_be_read_as_something_else_is_not_used(name: str) -> None:
    assert run_directory(Path("/srv", name)).parent == Path(tempfile.gettempdir())


@pytest.mark.parametrize("name", ["a b", "a'b", 'a"b', "工作台"])
def test_other_characters_do_no_harm(name: str) -> None:
    assert run_directory(Path("/srv", name)) == Path("/srv", name, "run")
