import psycopg
import pytest
from django.core.exceptions import ImproperlyConfigured
from django.db import OperationalError, ProgrammingError, connection, transaction
from pytest_django import Settings

from workbench.embedded.shared import ServerError
from workbench.failures import explain_failure


def refuse_connection() -> OperationalError:
    try:
        psycopg.connect("host=127.0.0.1 port=1 connect_timeout=2")
    except psycopg.OperationalError as cause:
        error = OperationalError(str(cause))
        error.__cause__ = cause
        return error
    raise AssertionError


def test_a_database_that_is_not_there_is_named_with_what_to_do(
    settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings.EMBEDDED_DATABASE = False
    config = {"NAME": "wb", "HOST": "db", "PORT": 5433, "PASSWORD": "secret"}
    monkeypatch.setitem(settings.DATABASES, "default", config)
    sentence = explain_failure(refuse_connection())
    assert sentence is not None
    assert sentence.startswith("The database wb at db:5433 can't be reached: connection failed")
    assert sentence.endswith("Connection refused. Start it, or correct DATABASE_URL")


@pytest.mark.django_db
def test_a_database_without_tables_wants_migrate() -> None:
    with pytest.raises(ProgrammingError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT 1 FROM no_such_table")
    assert "run `manage.py migrate`" in str(explain_failure(caught.value))


@pytest.mark.django_db
def test_a_mistake_in_a_query_is_ours() -> None:
    with pytest.raises(ProgrammingError) as caught, transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELEC 1")
    assert explain_failure(caught.value) is None


def test_a_file_of_the_installation_is_said_and_no_other(settings: Settings) -> None:
    inside = PermissionError(13, "Permission denied", str(settings.VAR_DIR / "run"))
    assert f"{inside.filename} can't be used: Permission denied" in str(explain_failure(inside))
    assert explain_failure(FileNotFoundError(2, "No such file", "/elsewhere")) is None


def test_what_is_written_for_people_is_passed_on() -> None:
    assert explain_failure(ServerError("put it back")) == "put it back"
    assert explain_failure(ImproperlyConfigured("correct X")) == "correct X"
    assert explain_failure(ZeroDivisionError()) is None
