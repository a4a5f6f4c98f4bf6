"""The audit trail can't be emptied; the database of tests, which is emptied after some of them, is the exception."""

from django.db import connection


def let_tests_empty_it() -> None:
    """Switch off the trigger that refuses TRUNCATE."""
    _alter("DISABLE")


def have_it_refuse() -> None:
    """Switch it on again, as it is everywhere else."""
    _alter("ENABLE ALWAYS")


def _alter(word: str) -> None:
    with connection.cursor() as cursor:
        cursor.execute(f"ALTER TABLE evolution_event {word} TRIGGER evolution_event_no_truncate")
