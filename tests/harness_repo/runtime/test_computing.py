import contextlib
import subprocess
import sys
import threading
import time

import pytest

from harness_repo.runtime import computing
from harness_repo.runtime.computing import Allowance, TooMuchComputing


def loop(rounds: int = 10**12) -> int:
    for _ in range(rounds):
        pass
    return rounds


def test_what_loops_is_stopped_and_named() -> None:
    began = time.monotonic()
    with pytest.raises(TooMuchComputing, match=r"the prompt took longer than 0\.1 seconds"):
        Allowance(0.1).spend("the prompt", loop)
    assert time.monotonic() - began < 10


def test_calls_share_one_allowance() -> None:
    allowance = Allowance(0.1)
    with pytest.raises(TooMuchComputing):
        allowance.spend("first", loop)
    with pytest.raises(TooMuchComputing):
        allowance.spend("second", loop, 10**8)


def swallow_once() -> None:
    """Like a library's bare except, or a finaliser, in which the first stop is lost."""
    with contextlib.suppress(BaseException):
        loop()
    loop()


def test_what_swallows_the_stop_is_stopped_again() -> None:
    with pytest.raises(TooMuchComputing):
        Allowance(0.05).spend("x", swallow_once)


def test_a_thread_that_waits_does_not_compute() -> None:
    assert Allowance(0.05).spend("waiting", time.sleep, 0.2) is None


def test_it_works_in_any_thread() -> None:
    failures: list[BaseException] = []

    def work() -> None:
        try:
            Allowance(0.05).spend("x", loop)
        except TooMuchComputing as failure:
            failures.append(failure)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join(10)
    assert len(failures) == 1


def test_nothing_is_raised_once_a_call_is_over() -> None:
    ends = []
    for rounds in range(100_000, 1_500_000, 50_000):
        try:
            ends.append(Allowance(0.01).spend("x", loop, rounds))
        except TooMuchComputing:
            ends.append(0)
        loop(1000)
    assert len(ends) == 28


def test_what_grows_is_stopped_and_the_limit_is_lifted_again() -> None:
    with pytest.raises(TooMuchComputing, match="512 MB"):
        Allowance().spend("growing", bytearray, 2 * 1024**3)
    assert len(bytearray(600 * 1024**2)) == 600 * 1024**2


PROFILED = """
import faulthandler, sys
from harness_repo.runtime.computing import Allowance, TooMuchComputing

def loop(): return sum(1 for _ in range(10**12))
def work(): return 1

faulthandler.dump_traceback_later(20, exit=True)
for function in (work, loop):
    try:
        Allowance(0.1).spend("x", function)
    except TooMuchComputing:
        pass
    sys.setprofile(lambda *_: None)
    work()
    sys.setprofile(None)
"""


def test_a_profiler_goes_on_after_it() -> None:
    """In Python 3.11 a stop that was taken back by sending nothing hangs the next call that is traced."""
    done = subprocess.run([sys.executable, "-c", PROFILED], capture_output=True, timeout=60, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_one_thread_watches_over_all() -> None:
    for _ in range(20):
        Allowance().spend("x", loop, 1000)
    watching = [thread for thread in threading.enumerate() if thread.name == "computing watch"]
    assert len(watching) == 1


def test_it_watches_again_after_it_has_slept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(computing, "LOOKS_BEFORE_SLEEP", 1)
    monkeypatch.setattr(computing, "LOOK_SECONDS", 0.001)
    for _ in range(3):
        Allowance().spend("x", loop, 1000)
        time.sleep(0.05)
        with pytest.raises(TooMuchComputing):
            Allowance(0.02).spend("x", loop)


FORKED = """
import os
from harness_repo.runtime.computing import Allowance, TooMuchComputing

def loop(): return sum(1 for _ in range(10**12))

Allowance().spend("x", len, "")
if os.fork() == 0:
    try:
        Allowance(0.1).spend("x", loop)
    except TooMuchComputing:
        held = bytearray(600 * 1024**2)
        Allowance().spend("more than the parent has", bytearray, 300 * 1024**2)
        os._exit(7)
    os._exit(1)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_a_process_that_was_forked_is_watched_by_its_own_measure() -> None:
    """Celery forks its workers from a process that has computed before."""
    done = subprocess.run([sys.executable, "-c", FORKED], capture_output=True, timeout=60, check=False)
    assert (done.stdout.strip(), done.stderr) == (b"7", b"")
