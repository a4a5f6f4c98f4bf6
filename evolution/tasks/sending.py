"""Messages to workers go out once what they tell of is committed."""

from collections.abc import Callable

from django.db import transaction


def send_on_commit(send: Callable[[], object]) -> None:
    """Call `send` after the transaction; a broker that is away is logged, and beat sends again what is queued."""

    # Django's own handling of a failure asks for the function's name, which a partial has not.
    def send_named() -> None:
        send()

    transaction.on_commit(send_named, robust=True)
