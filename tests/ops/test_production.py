"""The steps of docker-compose.yml by hand, against Debian's PostgreSQL and Redis on ports of their own."""

import contextlib
import shutil
import signal
import socket
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from tests.ops.conftest import PATIENCE, ROOT, Installation, wait_until
from workbench.embedded.shared import ServerSpec, SharedServer

pytestmark = pytest.mark.ops

POSTGRES = sorted(Path("/usr/lib/postgresql").glob("*/bin/postgres"))
REDIS = shutil.which("redis-server")


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def takes_connections(url: str) -> bool:
    try:
        psycopg.connect(url).close()
    except psycopg.OperationalError:
        return False
    return True


@pytest.fixture
def database(installation: Installation) -> Iterator[str]:
    """A PostgreSQL of Debian's; the keeper of the embedded one knows how to run it as root."""
    if not POSTGRES:
        pytest.skip("Debian's postgresql is not installed")
    home, port, binaries = installation.var / "debian", free_port(), POSTGRES[-1].parent
    home.mkdir()
    options = ["-c", "listen_addresses=127.0.0.1", "-c", f"unix_socket_directories={home}/run/socket"]
    admin = f"postgres://workbench@127.0.0.1:{port}/postgres"
    server = SharedServer(
        ServerSpec(
            name="debian",
            command=[str(binaries / "postgres"), "-D", str(home / "data"), "-p", str(port), *options],
            prepare=[
                str(binaries / "initdb"),
                "-D",
                str(home / "draft"),
                "-U",
                "workbench",
                "-E",
                "UTF8",
                "-A",
                "trust",
            ],
            draft=home / "draft",
            data=home / "data",
            run=home / "run",
            socket_folder=home / "run" / "socket",
            log=home / "log",
            stop_signal=signal.SIGINT,
            is_ready=lambda: takes_connections(admin),
            refuses_root=True,
        )
    )
    with server.in_use():
        with psycopg.connect(admin, autocommit=True) as connection:
            connection.execute("CREATE DATABASE workbench")
        yield admin.removesuffix("postgres") + "workbench"


@pytest.fixture
def broker(installation: Installation) -> Iterator[str]:
    if not REDIS:
        pytest.skip("Debian's redis-server is not installed")
    port = free_port()
    with running([REDIS, "--port", str(port), "--bind", "127.0.0.1", "--save", ""], installation, "redis"):
        yield f"redis://127.0.0.1:{port}/0"


@contextlib.contextmanager
def running(command: list[str], installation: Installation, name: str) -> Iterator[Path]:
    """Run a process for the length of a block; gives the file of its output."""
    log = installation.var / f"{name}.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command, cwd=ROOT, env=installation.environment, stdout=output, stderr=subprocess.STDOUT
        )
    try:
        yield log
    finally:
        process.terminate()
        process.wait(PATIENCE)


@pytest.fixture
def production(installation: Installation, database: str, broker: str) -> Installation:
    installation.environment |= {
        "DATABASE_URL": database,
        "CELERY_BROKER_URL": broker,
        "SECRET_KEY": "x" * 60,
        "STATIC_ROOT": str(installation.var / "static"),
        # As the image is used: nobody waits at a terminal.
        "REMAP_SIGTERM": "SIGQUIT",
    }
    return installation


def has_said(log: Path, words: str) -> bool:
    return words in log.read_text(errors="replace")


def is_healthy(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=10) as response:
            return bool(response.status == 200)
    except OSError:
        return False


def test_the_steps_of_the_compose_file_work_by_hand(production: Installation) -> None:
    for step in (["migrate", "--no-input"], ["collectstatic", "--no-input"]):
        result = production.manage(*step)
        assert result.returncode == 0, result.stderr
    port = free_port()
    python = [sys.executable, "-m"]
    gunicorn = [
        *python,
        "gunicorn",
        "workbench.wsgi:application",
        "--bind",
        f"127.0.0.1:{port}",
        "--no-control-socket",
    ]
    celery = [*python, "celery", "-A", "workbench"]
    with (
        running(gunicorn, production, "web"),
        running(
            [*celery, "worker", "--loglevel", "INFO", "--concurrency", "1"], production, "worker"
        ) as worker,
    ):
        wait_until(lambda: is_healthy(f"http://127.0.0.1:{port}/healthz"))
        sent = subprocess.run(
            [*celery, "call", "evolution.run_job", "--args", "[0]"],
            cwd=ROOT,
            env=production.environment,
            check=True,
        )
        assert sent.returncode == 0
        wait_until(lambda: has_said(worker, "Task evolution.run_job") and has_said(worker, "succeeded"))
    assert not (production.var / "pgdata").exists()
    assert not (production.var / "secret_key").exists()
