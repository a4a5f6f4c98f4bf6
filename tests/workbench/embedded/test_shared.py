import multiprocessing
import os
import signal
import stat
import time
from multiprocessing.synchronize import Event
from pathlib import Path

import pytest

from workbench.embedded.shared import make_folder
from workbench.embedded.valkey import is_answering, valkey_server


def use(var: Path, started: Event, end: Event) -> None:
    with valkey_server(var).in_use():
        started.set()
        end.wait(30)


def wait_until_gone(var: Path) -> bool:
    server = valkey_server(var)
    for _ in range(100):
        if not server.is_running():
            return True
        time.sleep(0.1)
    return False


def test_two_users_that_arrive_together_share_one_server(var: Path) -> None:
    context = multiprocessing.get_context("spawn")
    end = context.Event()
    events = [context.Event() for _ in range(2)]
    users = [context.Process(target=use, args=(var, event, end)) for event in events]
    for user in users:
        user.start()
    assert all(event.wait(20) for event in events)
    assert (var / "log" / "valkey.log").read_text().count("Ready to accept connections") == 1
    end.set()
    for user in users:
        user.join(20)
    assert [user.exitcode for user in users] == [0, 0]
    assert not valkey_server(var).is_running()


def test_the_server_ends_when_its_only_user_is_killed(var: Path) -> None:
    context = multiprocessing.get_context("spawn")
    started, end = context.Event(), context.Event()
    user = context.Process(target=use, args=(var, started, end))
    user.start()
    assert started.wait(20)
    user.kill()
    user.join()
    assert wait_until_gone(var)
    assert not is_answering(valkey_server(var).spec.socket_folder / "valkey.sock")


def test_the_keeper_starts_a_killed_server_again(var: Path) -> None:
    server = valkey_server(var)
    with server.in_use():
        keeper = int(server.lock_file("keeper").read_text())
        for pid in Path(f"/proc/{keeper}/task/{keeper}/children").read_text().split():
            os.kill(int(pid), signal.SIGKILL)
        deadline = time.monotonic() + 10
        while "starting it again" not in server.spec.log.read_text() or not server.spec.is_ready():
            assert time.monotonic() < deadline
            time.sleep(0.05)


def test_releasing_twice_is_harmless(var: Path) -> None:
    server = valkey_server(var)
    server.acquire()
    server.release()
    server.release()
    assert not server.is_running()


def test_the_socket_folder_is_private(var: Path) -> None:
    server = valkey_server(var)
    with server.in_use():
        assert stat.S_IMODE(server.spec.socket_folder.stat().st_mode) == 0o700


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path)
    with pytest.raises(PermissionError):
        make_folder(tmp_path / "link", 0o700)
