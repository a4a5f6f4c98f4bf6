import os
import signal
import subprocess
import sys

from evolution.limits.holders import is_gone, name_process

SAY_NAME = "from evolution.limits.holders import name_process; print(name_process(), flush=True); input()"


def test_process_that_runs_is_not_gone_and_one_that_was_killed_is_before_it_is_buried() -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SAY_NAME], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        name = process.stdout.readline().strip()
        assert not is_gone(name)
        process.send_signal(signal.SIGKILL)
        os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
        assert is_gone(name)
    assert is_gone(name)


def test_each_name_is_another_and_fits_where_names_stand() -> None:
    first, second = name_process(), name_process()
    assert first != second
    assert len(first) <= 100
    assert not is_gone(first)


def test_number_that_another_process_has_by_now_does_not_count() -> None:
    *others, _, token = name_process().split(":")
    assert is_gone(":".join([*others, "1", token]))


def test_nothing_is_known_of_other_machines_and_other_names() -> None:
    host, kind, _, *others = name_process().split(":")
    assert not is_gone(":".join([host, kind, "0123456789abcdef", *others]))
    assert not any(map(is_gone, ["", "a", "host:17:abc", "host:p1::9:9:x"]))
