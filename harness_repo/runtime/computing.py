"""Limits what a harness may compute: its templates, hooks and schemas run in our process, and may loop or grow.

A library that loops cannot be asked to stop, so a watching thread raises in the one that computes. That reaches
Python code; regular expressions, which it would not reach, have a time-out of their own (`patterns`). Memory is
limited for the whole process meanwhile: what is asked for beyond it is a MemoryError instead of the process's end.

All of this is done several times in every run, so one thread watches over all, and looks every LOOK_SECONDS.
"""

import ctypes
import os
import resource
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import ParamSpec, TypeVar

# Of one run: prompt, hooks and schemas together take a few hundredths, once their libraries are loaded.
RUN_SECONDS = 2.0
AGAIN_SECONDS = 0.5
MEMORY_BYTES = 512 * 1024 * 1024
LOOK_SECONDS = 0.02
# The thread goes to sleep when nothing was computed for so many looks.
LOOKS_BEFORE_SLEEP = 50

_STATUS = Path("/proc/self/statm")
_PAGE = resource.getpagesize()
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
            self._left = max(0.001, self._left - watch.spent())


class _Watch:
    """Raises OutOfTime in the thread that made it when that has computed for so many seconds more.

    And again after a while: what arrives in a finaliser, or inside a library's bare except, is lost.
    """

    def __init__(self, seconds: float) -> None:
        self._thread = threading.get_ident()
        self._clock = time.pthread_getcpuclockid(self._thread)
        self._began = time.clock_gettime(self._clock)
        self._until = self._began + seconds
        self._is_over = False
        self._has_sent = False
        self._lock = threading.Lock()

    def start(self) -> None:
        """Have it looked after from now on."""
        _watchman.add(self)

    def stop(self) -> None:
        """End the watch; once this is over nothing is raised any more."""
        with self._lock:
            self._is_over = True
        _watchman.drop(self)
        if self._has_sent:
            _take_back(self._thread)
            self._has_sent = False

    def spent(self) -> float:
        """Seconds that the thread has computed since the watch was made; only that thread may ask."""
        return time.clock_gettime(self._clock) - self._began

    def look(self) -> None:
        """Raise in the thread if its time is over."""
        # Who holds the lock knows that the other thread is still inside `spend`.
        with self._lock:
            if self._is_over:
                return
            now = time.clock_gettime(self._clock)
            if now >= self._until:
                self._has_sent = True
                self._until = now + AGAIN_SECONDS
                _send(self._thread, OutOfTime)


class _Watchman:
    """The thread that looks after all watches of the process; it starts with the first of them, and anew in a fork."""

    def __init__(self) -> None:
        self._watches: dict[int, _Watch] = {}
        self._added = 0
        self._is_called = threading.Event()
        self._thread: threading.Thread | None = None
        self._starting = threading.Lock()

    def add(self, watch: _Watch) -> None:
        """Look after one more."""
        self._watches[id(watch)] = watch
        # Two threads at once may count one; all that matters is that it changes.
        self._added += 1
        if not self._is_called.is_set():
            self._call()

    def drop(self, watch: _Watch) -> None:
        """Look after it no longer."""
        self._watches.pop(id(watch), None)

    def _call(self) -> None:
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._go, name="computing watch", daemon=True)
                self._thread.start()
        self._is_called.set()

    def _go(self) -> None:
        while True:
            self._is_called.wait()
            self._look_while_needed()
            self._is_called.clear()
            # Whoever came before that has seen the event set, and waits for nobody to call.
            if self._watches:
                self._is_called.set()

    def _look_while_needed(self) -> None:
        """Look again and again, until for long nothing was to be watched."""
        seen, looks = self._added, 0
        while looks < LOOKS_BEFORE_SLEEP or self._watches:
            time.sleep(LOOK_SECONDS)
            for watch in self._watches.copy().values():
                # The clock of a thread that has ended; this one has to go on.
                with suppress(OSError):
                    watch.look()
            looks = 0 if self._added != seen else looks + 1
            seen = self._added


_watchman = _Watchman()


def _after_fork() -> None:
    """In a child: its parent's thread is not here, and the open file tells of the parent."""
    global _watchman, _memory_file, _pages  # noqa: PLW0603
    _watchman = _Watchman()
    _memory_file = None
    _pages = (0, 0.0)


os.register_at_fork(after_in_child=_after_fork)


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


# Open for as long as the process lives: opening it takes longer than all the rest.
_memory_file: int | None = None
# Of data, and until when that is good enough.
_pages = (0, 0.0)


def _pages_of_data() -> int | None:
    """How many pages of data the process had LOOK_SECONDS ago at most; None where the system does not tell."""
    global _memory_file, _pages  # noqa: PLW0603
    now = time.monotonic()
    if now < _pages[1]:
        return _pages[0]
    if _memory_file is None:
        if not _STATUS.exists():
            return None
        _memory_file = os.open(_STATUS, os.O_RDONLY | os.O_CLOEXEC)
    _pages = int(os.pread(_memory_file, 200, 0).split()[5]), now + LOOK_SECONDS
    return _pages[0]


@contextmanager
def _limited_memory() -> Iterator[None]:
    """Let the process take so much more than it has; where the system does not tell what it has, anything."""
    pages = _pages_of_data()
    if pages is None:
        yield
        return
    soft, hard = _LIMITS
    most = pages * _PAGE + MEMORY_BYTES
    resource.setrlimit(
        resource.RLIMIT_DATA, (most if soft == resource.RLIM_INFINITY else min(most, soft), hard)
    )
    try:
        yield
    finally:
        # What the process began with, and not what it had before: two threads may overlap here.
        resource.setrlimit(resource.RLIMIT_DATA, _LIMITS)
