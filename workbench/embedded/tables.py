"""The embedded database's tables: made or brought up to date before a command that needs them.

With a real server the operator migrates; here nobody else would, and a fresh clone's first command would fail.
"""

from collections.abc import Sequence

import django
from django.conf import settings
from django.core.management import call_command
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

# Commands that look after tables themselves, or must see them as they are.
WITHOUT_TABLES = frozenset(
    {
        "check",
        "dbshell",
        "flush",
        "makemigrations",
        "migrate",
        "showmigrations",
        "sqlmigrate",
        "squashmigrations",
    }
)
# Any number: whoever holds this advisory lock migrates, the others wait.
LOCK = 7_120_441


def needs_tables(arguments: Sequence[str]) -> bool:
    """Whether the command line `arguments` (program name first) wants the tables of the embedded database."""
    return settings.EMBEDDED_DATABASE and arguments[1] not in WITHOUT_TABLES


def prepare_tables() -> None:
    """Apply what migrations are missing; safe for several processes at once, and quick when there are none."""
    django.setup()
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_advisory_lock(%s)", [LOCK])
        executor = MigrationExecutor(connection)
        if executor.migration_plan(executor.loader.graph.leaf_nodes()):
            call_command("migrate", interactive=False, verbosity=0)
        cursor.execute("SELECT pg_advisory_unlock(%s)", [LOCK])
