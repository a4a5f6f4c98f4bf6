"""What processes cost: CPU seconds of trees, and their memory over time with shared pages counted once."""

import contextlib
import threading
import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self

import psutil


def tree(pid: int) -> list[psutil.Process]:
    """A process and all its descendants, as far as they live."""
    with contextlib.suppress(psutil.NoSuchProcess):
        root = psutil.Process(pid)
        return [root, *root.children(recursive=True)]
    return []


def cpu_seconds(pids: Iterable[int]) -> float:
    """User and system seconds of the trees, with those of descendants that have ended and were waited for."""
    total = 0.0
    for process in (one for pid in pids for one in tree(pid)):
        with contextlib.suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])
    return total


def memory_mb(pid: int) -> float:
    """The proportional set size of a tree."""
    total = 0
    for process in tree(pid):
        with contextlib.suppress(psutil.Error):
            total += process.memory_full_info().pss
    return total / 2**20


@dataclass
class MemoryWatch:
    """Samples the memory of a tree until it is left."""

    pid: int
    seconds: float = 0.5
    # moment by CLOCK_MONOTONIC, and MB
    samples: list[tuple[float, float]] = field(default_factory=list)
    _stop: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._watch)
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while True:
            if size := memory_mb(self.pid):
                self.samples.append((time.monotonic(), size))
            if self._stop.wait(self.seconds):
                return

    @property
    def peak(self) -> float:
        """MB."""
        return max(size for _, size in self.samples)

    def mean_between(self, begin: float, end: float) -> float:
        """MB, on average over a part of the samples: 0 is the first one, 1 the last."""
        count = len(self.samples)
        part = [size for _, size in self.samples[int(begin * count) : max(int(end * count), 1)]]
        return sum(part) / len(part)
