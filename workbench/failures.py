"""What is wrong outside the program, in one sentence for the terminal: what, where, and what to do."""

import psycopg
from django.conf import settings
from django.core.exceptions import ImproperlyConfigured
from django.db import DatabaseError, OperationalError
from psycopg.errors import UndefinedTable

from workbench.embedded.shared import ServerError


def explain_failure(error: Exception) -> str | None:
    """The sentence; None for everything that can be a fault of ours, and wants its traceback."""
    if isinstance(error, ImproperlyConfigured | ServerError):
        return str(error)
    if isinstance(error, DatabaseError | psycopg.Error):
        return _explain_database(error)
    if isinstance(error, OSError):
        return _explain_file(error)
    return None


def _explain_database(error: DatabaseError | psycopg.Error) -> str | None:
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    if isinstance(cause, UndefinedTable):
        return "The database has no tables, or old ones; run `manage.py migrate` first"
    # Without a code it is not the server that speaks: there is no connection.
    if isinstance(error, OperationalError | psycopg.OperationalError) and not getattr(
        cause, "sqlstate", None
    ):
        said = (str(error).splitlines() or [""])[0].strip()
        return f"The database {_name_database()} can't be reached: {said}. {_advise_database()}"
    return None


def _name_database() -> str:
    database = settings.DATABASES["default"]
    port = f":{database['PORT']}" if database.get("PORT") else ""
    return f"{database['NAME']} at {database.get('HOST') or 'the local socket'}{port}"


def _advise_database() -> str:
    if settings.EMBEDDED_DATABASE:
        return f"Look into {settings.VAR_DIR / 'log' / 'postgres.log'}"
    return "Start it, or correct DATABASE_URL"


def _explain_file(error: OSError) -> str | None:
    """Only what belongs to the installation's folder: any other file is somebody else's to explain."""
    var = str(settings.VAR_DIR)
    name = str(error.filename or "")
    if not name or not (name.startswith(var) or var.startswith(name)):
        return None
    advice = f"WORKBENCH_VAR (now {var}) must be a folder that this user can write in"
    return f"{name} can't be used: {error.strerror}. {advice}"
