import pytest
from asgiref.sync import async_to_sync
from django.db import InternalError, ProgrammingError, connection

from evolution.loop.patience import patiently


@pytest.mark.django_db(transaction=True)
def test_server_that_only_reads_after_a_failover_is_waited_for() -> None:
    tries: list[int] = []

    def write() -> int:
        tries.append(len(tries))
        with connection.cursor() as cursor:
            if len(tries) == 1:
                cursor.execute("SET default_transaction_read_only = on")
            cursor.execute("DELETE FROM evolution_storedbatch")
        return len(tries)

    assert async_to_sync(patiently)(write) == 2


@pytest.mark.django_db(transaction=True)
def test_other_failures_are_raised_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for failure in (InternalError("no such thing"), ProgrammingError("no such table")):

        def fail(failure: Exception = failure) -> None:
            raise failure

        with pytest.raises(type(failure)):
            async_to_sync(patiently)(fail)
