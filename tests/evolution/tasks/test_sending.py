"""Messages that cannot be sent take nothing back of what was committed."""

from functools import partial

import pytest
from django.db import connection, transaction

from evolution.tasks.sending import send_on_commit


def refuse(number: int) -> None:
    raise ConnectionError(f"no broker for {number}")


@pytest.mark.django_db(transaction=True)
def test_a_broker_that_is_away_is_logged_and_nothing_is_raised(caplog: pytest.LogCaptureFixture) -> None:
    sent: list[int] = []
    with transaction.atomic():
        send_on_commit(partial(refuse, 1))
        send_on_commit(partial(sent.append, 2))
        assert sent == []
    assert sent == [2]
    assert connection.run_on_commit == []
    assert "no broker for 1" in caplog.text
