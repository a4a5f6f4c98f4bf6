"""Limits what a harness may compute: its templates, hooks and schemas run in our process, and may loop or grow.

A library that loops cannot be asked to stop, so a watching thread raises in the one that computes. That reaches
Python code; regular expressions, which it would not reach, have a time-out of their own (`patterns`). Memory is
limited for the whole process meanwhile: what is asked for beyond it is a MemoryError instead of the process's end.
"""

import ctypes
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import ParamSpec, TypeVar

# Of one run: prompt, hooks and schemas together take a few hundredths, once their libraries are loaded.
RUN_SECONDS = 2.0
AGAIN_SECONDS = 0.5
MEMORY_BYTES = 512 * 1024 * 1024

_STATUS = Path("/proc/self/statm")
_LIMITS = resource.getrlimit(resource.RLIMIT_DATA)

_P = ParamSpec("_P")
_Result = TypeVar("_Result")


class TooMuchComputing(Exception):
    """Something took more computing than it was allowed; the text says what."""


class OutOfTime(BaseException):
    """Raised inside what takes too long; not an Exception, so that no library takes it for a failure of its own.

    Whoever knows better what was at work says so in `where`, and raises it again.
    """

    where = ""


class Allowance:
    """Seconds of computing that several calls share; of processor time, so that a busy machine changes nothing."""

    def __init__(self, seconds: float = RUN_SECONDS) -> None:
        self._seconds = seconds
        self._left = seconds

    def spend(
        self, what: str, function: Callable[_P, _Result], *args: _P.args, **kwargs: _P.kwargs
    ) -> _Result:
        """Call the function, which must not await; TooMuchComputing when the allowance ends before it does."""
        watch = _Watch(self._left)
        began = time.thread_time()
        try:
            try:
                watch.start()
                with _limited_memory():
                    return function(*args, **kwargs)
            finally:
                watch.stop()
        except OutOfTime as failure:
            # It may have come in the midst of the first time.
            watch.stop()
            text = f"{failure.where or what} took longer than {self._seconds:g} seconds of computing"
            raise TooMuchComputing(text) from failure
        except MemoryError as failure:
            text = f"{what} took more than {MEMORY_BYTES // 1024**2} MB of memory"
            raise TooMuchComputing(text) from failure
        finally:
            # Never nothing: what comes next has to start before it can be stopped.
            self._left = max(0.001, self._left - (time.thread_time() - began))


class _Watch:
    """Raises OutOfTime in the thread that made it when that has computed for so many seconds more.

    And again after a while: what arrives in a finaliser, or inside a library's bare except, is lost.
    """

    def __init__(self, seconds: float) -> None:
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._seconds = seconds
        self._until = time.clock_gettime(self._clock) + seconds
        self._is_over = threading.Event()
        self._has_sent = False
        self._lock = threading.Lock()

    def start(self) -> None:
        threading.Thread(target=self._look, name="computing watch", daemon=True).start()

    def stop(self) -> None:
        """End the watch; once this is over nothing is raised any more."""
        with self._lock:
            self._is_over.set()
        if self._has_sent:
            _take_back(self._thread)
            self._has_sent = False

    def _look(self) -> None:
        left = self._seconds
        while not self._is_over.wait(left):
            # Who holds the lock knows that the other thread is still inside `spend`.
            with self._lock:
                if self._is_over.is_set():
                    return
                left = self._until - time.clock_gettime(self._clock)
                if left <= 0:
                    self._has_sent = True
                    _send(self._thread, OutOfTime)
                    left = AGAIN_SECONDS


class _TakenBack(BaseException):
    """Stands in for what was sent and has not arrived."""


def _take_back(thread: int) -> None:
    """Have nothing more raised in this thread, which is the one given.

    Sending nothing would do that too, but Python 3.11 then looks for something for ever: a debugger, a profiler or a
    coverage tool would hang the process at the next call. So something is sent, and caught.
    """
    try:
        _send(thread, _TakenBack)
        while True:
            time.sleep(0)
    except _TakenBack:
        pass


def _send(thread: int, failure: type[BaseException]) -> None:
    """Have the interpreter raise in that thread before its next step, instead of what was sent before."""
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread), ctypes.py_object(failure))


@contextmanager
def _limited_memory() -> Iterator[None]:
    """Let the process take so much more than it has; where the system does not tell what it has, anything."""
    if not _STATUS.exists():
        yield
        return
    pages = int(_STATUS.read_text().split()[5])
    soft, hard = _LIMITS
    most = pages * resource.getpagesize() + MEMORY_BYTES
    resource.setrlimit(
        resource.RLIMIT_DATA, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard)
    )
    try:
        yield
    finally:
        # What the process began with, and not what it had before: two threads may overlap here.
        resource.setrlimit(resource.RLIMIT_DATA, _LIMITS)
