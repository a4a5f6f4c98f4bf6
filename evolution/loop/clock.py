"""The time that all processes share: the database's, since machines differ in theirs."""

from datetime import datetime

from django.db import connection


def database_time() -> datetime:
    """What time it is for the database, at this moment and not at the beginning of the transaction."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        now: datetime = cursor.fetchone()[0]
    return now
