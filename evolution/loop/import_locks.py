"""One process at a time works on an import; when it dies, the database lets go of its hold at once."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.db import Error, connection
from django.utils.translation import gettext as _

from evolution.errors import ImportTaken
from evolution.models import ImportRun

# Sets these locks apart from others of the database: "impo".
_SPACE = 0x696D706F << 32


@contextmanager
def hold_import(run: ImportRun) -> Iterator[None]:
    """Hold the import for this database session; raises ImportTaken when another process has it."""
    if not try_hold(run):
        raise ImportTaken(_("import %(number)d is under way in another process") % {"number": run.pk})
    try:
        yield
    finally:
        release(run)


def try_hold(run: ImportRun) -> bool:
    """Whether the import is this session's now; once more than released it stays held."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_try_advisory_lock(%s)", [_SPACE + run.pk])
        return bool(cursor.fetchone()[0])


def release(run: ImportRun) -> None:
    """Let go; a connection that is broken has let go already."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_advisory_unlock(%s)", [_SPACE + run.pk])
    except Error:
        connection.close()
