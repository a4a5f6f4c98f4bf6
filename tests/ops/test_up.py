"""`manage.py up` with everything embedded."""

import os
import re
import signal
import socket
import stat
import time
import urllib.request

import psutil
import pytest

from tests.ops.conftest import Installation, wait_until

pytestmark = pytest.mark.ops


def get(url: str) -> tuple[int, str]:
    with urllib.request.urlopen(url, timeout=30) as response:
        return response.status, response.read().decode()


def test_it_serves_the_sign_in_page_and_says_the_password(running: Installation) -> None:
    up = running.ups[0]
    assert 'type="password"' in get(up.url())[1]
    password = up.wait_for(r"admin with the password (\S+)")[1]
    file = running.var / "sign-in.txt"
    assert f"password: {password}\n" in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize("name", ["web", "worker", "beat"])
def test_logs_carry_the_name_of_their_part(running: Installation, name: str) -> None:
    assert running.ups[0].wait_for(rf"(?m)^{name} +\| ").group().startswith(name)


def test_a_second_one_says_what_runs_and_changes_nothing(running: Installation) -> None:
    up = running.ups[0]
    url = up.url()
    second = running.manage("up")
    assert second.returncode == 1
    assert f"Already running at {url} (process {up.process.pid})" in second.stderr
    assert get(url + "healthz")[0] == 200


def test_a_command_beside_it_shares_the_database(running: Installation) -> None:
    running.ups[0].url()
    code = "from django.contrib.auth.models import User; print(User.objects.count())"
    assert running.manage("shell", "--no-imports", "-c", code).stdout.strip() == "1"
    assert get(running.ups[0].url() + "healthz")[0] == 200


def test_a_killed_worker_and_web_server_come_back(running: Installation) -> None:
    up = running.ups[0]
    url = up.url()
    first = {name: up.part(name) for name in ("worker", "web")}
    for pid in first.values():
        os.kill(pid, signal.SIGKILL)
    for name, pid in first.items():
        up.wait_for(rf"{name} was killed by SIGKILL; starting it again in 0.5 s")
        wait_until(lambda name=name, pid=pid: up.part(name) != pid)  # type: ignore[misc]
    # The listening socket never closed: a request made meanwhile waits and is answered.
    assert get(url + "healthz")[0] == 200


def test_a_killed_database_comes_back(running: Installation) -> None:
    url = running.ups[0].url()
    postmaster = int((running.var / "pgdata" / "postmaster.pid").read_text().split()[0])
    os.kill(postmaster, signal.SIGKILL)
    running.ups[0].wait_for("keeper: the server ended with code -9; starting it again")
    wait_until(lambda: '"database": "ok"' in get(url + "healthz")[1])


def test_stopping_it_ends_its_own_and_leaves_the_database_to_a_command(ended: Installation) -> None:
    up = ended.up()
    up.url()
    stranger = psutil.Popen(["sleep", "60"])
    code = "import time; from django.db import connection as c; time.sleep(8); c.ensure_connection(); print('still')"
    with ended.start("shell", "--no-imports", "-c", code) as command:
        time.sleep(2)
        assert up.stop() == 0
        assert command.poll() is None
        assert command.communicate()[0].strip() == "still"
    assert ended.processes() == []
    assert stranger.is_running()
    stranger.terminate()
    stranger.wait()


def test_after_a_hard_kill_nothing_stays_and_the_next_start_works(ended: Installation) -> None:
    up = ended.up()
    up.wait_for("worker.*ready")
    up.process.kill()
    up.process.wait()
    wait_until(lambda: ended.processes() == [])
    again = ended.up()
    assert get(again.url() + "healthz")[0] == 200
    assert "The first sign-in is kept in" in again.said()
    assert again.stop() == 0


def test_a_command_alone_starts_the_database_and_ends_it(installation: Installation) -> None:
    assert installation.manage("migrate", "--verbosity", "0").returncode == 0
    assert (installation.var / "pgdata").is_dir()
    assert installation.processes() == []


def test_a_taken_port_is_said_before_anything_is_started(installation: Installation) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = other.getsockname()[1]
        result = installation.manage("up", "--port", str(port))
    assert result.returncode == 1
    assert re.search(rf"port {port} on 127.0.0.1 is in use", result.stderr)
    assert not (installation.var / "pgdata").exists()


def test_help_starts_nothing(installation: Installation) -> None:
    assert installation.manage("help").returncode == 0
    assert not (installation.var / "run").exists()


UNREACHABLE = {
    "DATABASE_URL": "postgres://me:secret@127.0.0.1:1/wb",
    "CELERY_BROKER_URL": "redis://127.0.0.1:1/0",
}


@pytest.mark.parametrize(
    ("environment", "line", "said"),
    [
        (UNREACHABLE, "up", "error: The database wb at 127.0.0.1:1 can't be reached"),
        (UNREACHABLE, "cluster", "error: The database wb at 127.0.0.1:1 can't be reached"),
        (UNREACHABLE, "migrate", "error: The database wb at 127.0.0.1:1 can't be reached"),
        ({"DATABASE_URL": "nonsense"}, "up", "error: DATABASE_URL is not the address"),
        ({"DATABASE_URL": "nonsense"}, "evaluate", "error: DATABASE_URL is not the address"),
        ({"PORT": "abc"}, "up", "--port or PORT is 'abc'; it must be a number from 0 to 65535"),
        ({}, "up --port 99999", "it must be a number from 0 to 65535"),
        ({}, "up --host 203.0.113.9", "must be an address of this machine"),
        (
            {"WORKBENCH_VAR": "/dev/null"},
            "up",
            "error: /dev/null is a file; WORKBENCH_VAR must name a folder",
        ),
        (
            {"WORKBENCH_VAR": "/dev/null"},
            "demo",
            "error: /dev/null is a file; WORKBENCH_VAR must name a folder",
        ),
    ],
)
def test_what_is_wrong_outside_is_said_in_a_sentence(
    installation: Installation, environment: dict[str, str], line: str, said: str
) -> None:
    installation.environment |= environment
    result = installation.manage(*line.split())
    assert (result.returncode, "Traceback" in result.stderr) == (1, False), result.stderr
    assert said in result.stderr
    assert "secret" not in result.stderr


def test_a_hard_kill_while_the_demonstration_is_loaded_ends_that_too(ended: Installation) -> None:
    up = ended.up("--port", "0")
    up.wait_for("load demonstration")
    wait_until(lambda: any("load_demonstration" in process.cmdline() for process in ended.processes()))
    up.process.kill()
    up.process.wait()
    killed = time.monotonic()
    wait_until(lambda: ended.processes() == [])
    # It takes much longer to load.
    assert time.monotonic() - killed < 8
