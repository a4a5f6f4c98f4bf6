"""The Celery application: two queues, JSON messages, and a task that survives its worker."""

import asyncio
import contextlib
import os
import signal
import sys
import warnings
from collections.abc import Callable
from typing import Any

import uvloop
from celery import Celery
from celery.exceptions import SecurityWarning
from celery.signals import worker_process_init, worker_ready

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "workbench.settings")

# It is about pickled messages, which we refuse; `make up` may run as root.
warnings.filterwarnings(
    "ignore", message="You're running the worker with superuser", category=SecurityWarning
)

app = Celery("workbench")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@worker_process_init.connect
def prepare_process(**_: Any) -> None:
    """Make a process of the pool ready before its first task: a fast event loop, and what models need imported."""
    # Django is set up by now.
    from evolution.adapters.chat import warm_up  # noqa: PLC0415
    from evolution.errors import LoopError  # noqa: PLC0415

    asyncio.set_event_loop_policy(uvloop.EventLoopPolicy())
    # The thread of the database computes in short pieces, so that answers of models are not kept waiting.
    sys.setswitchinterval(0.0005)
    # Settings that can't be read are said by the tasks that need them.
    with contextlib.suppress(LoopError):
        warm_up()


@worker_ready.connect
def end_tasks_with_the_worker(**_: Any) -> None:
    """When the worker is asked to end, let tasks of evaluations come to an end by themselves.

    Celery's own signal for it comes after the time that running tasks are given.
    """
    for number in (signal.SIGTERM, signal.SIGQUIT, signal.SIGINT):
        handler = signal.getsignal(number)
        if callable(handler):
            signal.signal(number, _stop_first(handler))


def _stop_first(handler: Callable[..., Any]) -> Callable[..., Any]:
    from evolution.tasks.stopping import ask_to_stop  # noqa: PLC0415  Django is set up by now

    def handle(*args: Any) -> None:
        ask_to_stop()
        handler(*args)

    return handle
