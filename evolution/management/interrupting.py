"""Ctrl-C while a command works: what is under way is stopped in order, so that nothing is left held."""

import contextlib
import signal
import threading
from collections.abc import Callable, Iterator
from types import FrameType

# As shells count: 128 and the signal.
INTERRUPTED = 130


@contextlib.contextmanager
def notice_interrupts() -> Iterator[Callable[[], bool]]:
    """Give what says whether Ctrl-C was pressed inside; pressed once more, it ends the process at once.

    Off the main thread, which alone hears of signals, nothing is noticed.
    """
    pressed = threading.Event()

    def note(_signal: int, _frame: FrameType | None) -> None:
        pressed.set()
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    if threading.current_thread() is not threading.main_thread():
        yield pressed.is_set
        return
    before = signal.signal(signal.SIGINT, note)
    try:
        yield pressed.is_set
    finally:
        signal.signal(signal.SIGINT, before)
