"""What commands do while a database, a broker or an endpoint is away: say so in a sentence, and how they end."""

import contextlib
from collections.abc import Callable, Iterator
from typing import TypeVar

from celery import current_app
from django.core.management.base import CommandError
from django.db import InterfaceError, OperationalError
from kombu.exceptions import OperationalError as BrokerAway

from evolution.errors import LoopError
from harness_repo.git.errors import HarnessRepoError

# Exit codes of what is asked for and can't be, and of an evaluation in which some results are errors, or that could
# not be made for want of a database, a broker or an endpoint.
USAGE = 2
HAS_ERRORS = 4

T = TypeVar("T")


@contextlib.contextmanager
def tell_what_is_away() -> Iterator[None]:
    """Turn a database or broker that can't be reached into CommandError; what was measured before is kept."""
    try:
        yield
    except (OperationalError, InterfaceError) as failure:
        raise _away("database", failure) from failure
    except BrokerAway as failure:
        raise _away("broker", failure) from failure


def _away(what: str, failure: Exception) -> CommandError:
    said = (str(failure).splitlines() or [""])[0].strip()
    return CommandError(f"the {what} can't be reached: {said}", returncode=HAS_ERRORS)


def refuse(ask: Callable[[], T]) -> T:
    """What is asked for, or CommandError for what can't be had."""
    try:
        return ask()
    except UnicodeEncodeError:
        raise CommandError("a name is not text, as no database keeps it", returncode=USAGE) from None
    except (LoopError, HarnessRepoError) as failure:
        raise CommandError(str(failure), returncode=USAGE) from None


def reach_broker(*, must: bool) -> bool:
    """Whether tasks can be sent; without a broker there are no workers to wait for, so that it `must` be there."""
    try:
        with current_app.connection_for_write() as connection:
            connection.ensure_connection(max_retries=1, timeout=5)
    except BrokerAway:
        if must:
            raise
        return False
    return True
