"""Several people at once: each in a thread with a connection of its own."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from django.db import connections


def run_at_once(*works: Callable[[], object]) -> list[object]:
    """Start all together; returns what each returned, or the error it raised."""
    start = threading.Barrier(len(works))

    def run(work: Callable[[], object]) -> object:
        try:
            start.wait(10)
            return work()
        except Exception as error:  # noqa: BLE001  the test looks at it
            return error
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(works)) as pool:
        return list(pool.map(run, works))
