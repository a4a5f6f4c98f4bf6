"""`manage.py up`: the whole installation in the foreground."""

import asyncio
import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from argparse import ArgumentParser
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from django.conf import settings
from django.core.management import call_command
from django.core.management.base import BaseCommand, CommandError
from django.db import connections

from workbench.claim import AlreadyRunning, Claim, claim_installation
from workbench.embedded.servers import embedded_servers
from workbench.embedded.shared import ServerError, SharedServer
from workbench.listener import AddressRefused, bind_listener, describe_url
from workbench.sign_in import FirstSignIn, create_first_account
from workbench.supervisor import LogStream, Part, Supervisor, end_with_parent

WATCH_SECONDS = 2.0
# How long the children of a supervisor that was killed may take to let go of the port.
UNCLEAN_PORT_SECONDS = 20.0


class Command(BaseCommand):
    """Starts what is configured to be embedded, prepares the database, and runs web, worker and beat."""

    help = "Run database, broker, web server, Celery worker and beat in the foreground."
    # The database is not there yet when Django would check it.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        """Take the address from the command line or the environment."""
        parser.add_argument("--host", default=os.environ.get("WEB_HOST", "127.0.0.1"))
        parser.add_argument(
            "--no-demonstration", action="store_true", help="leave an empty installation empty"
        )
        parser.add_argument("--port", default=os.environ.get("PORT", "8000"))

    def handle(self, *_args: Any, **options: Any) -> None:
        """Run until Ctrl-C or SIGTERM."""
        began = time.monotonic()
        var: Path = settings.VAR_DIR
        port = read_count("--port or PORT", options["port"], least=0, most=65_535)
        for name in ("WEB_WORKERS", "WORKER_CONCURRENCY"):
            read_processes(name)
        # Until the supervisor takes over, SIGTERM unwinds like Ctrl-C does.
        signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
        try:
            with (
                claim_installation(var) as claim,
                open_listener(options["host"], port, claim) as listener,
                hold_servers() as servers,
            ):
                claim.announce(describe_url(listener))
                first = prepare(var, demonstration=not options["no_demonstration"])
                asyncio.run(supervise(listener, servers, began, first))
        except (AlreadyRunning, AddressRefused, ServerError) as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            self.stderr.write("stopped")


def read_count(name: str, given: object, *, least: int, most: int) -> int:
    """The number that an option or variable carries; CommandError when it is none, or out of range."""
    text = str(given)
    if not (text.isascii() and text.isdecimal() and len(text) < 10 and least <= int(text) <= most):
        raise CommandError(f"{name} is {text[:40]!r}; it must be a number from {least} to {most}")
    return int(text)


@contextlib.contextmanager
def open_listener(host: str, port: int, claim: Claim) -> Iterator[socket.socket]:
    """Bind the web server's address."""
    with bind_listener(host, port, patience=UNCLEAN_PORT_SECONDS if claim.unclean else 0.0) as listener:
        yield listener


@contextlib.contextmanager
def hold_servers() -> Iterator[list[SharedServer]]:
    """Start the embedded servers, or share those that run."""
    with contextlib.ExitStack() as stack:
        servers = embedded_servers()
        if servers:
            say(f"starting {' and '.join(server.spec.name for server in servers)}")
        for server in servers:
            stack.enter_context(server.in_use())
        yield servers


def prepare(var: Path, *, demonstration: bool) -> FirstSignIn | None:
    """Bring database and static files up to date, and load what a first look needs."""
    say("preparing database and static files")
    call_command("migrate", interactive=False, verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    first = create_first_account(var)
    connections.close_all()
    if demonstration:
        run_beside("load_demonstration")
    return first


def run_beside(command: str) -> None:
    """Run a management command in a process of its own: what it imports would stay in this one for ever.

    It ends with us also when we are killed, so that the next `up` finds nobody at the same work.
    """
    say(command.replace("_", " "))
    arguments = [sys.executable, str(settings.BASE_DIR / "manage.py"), command]
    with subprocess.Popen(
        arguments,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        # There is one thread yet, so code between fork and exec is safe.
        preexec_fn=end_with_parent,  # noqa: PLW1509
    ) as process:
        try:
            for line in process.stdout or ():
                say(line.rstrip())
        finally:
            process.terminate()
    if process.returncode:
        say(f"{command} ended with code {process.returncode}; going on without it")


def say(text: str) -> None:
    """Write a line like those of the stream, before there is one."""
    print(f"up       | {text}", flush=True)


def list_parts(listener: socket.socket, servers: list[SharedServer]) -> list[Part]:
    """List the processes: all of them inherit our settings through the environment."""
    descriptor = listener.fileno()
    # Were we killed, the servers would last until the last part has ended, too.
    held = [server.fileno() for server in servers]
    workers, concurrency = read_processes("WEB_WORKERS"), read_processes("WORKER_CONCURRENCY")
    # Loaded once, before the fork: the workers share the memory of what they import.
    gunicorn = (
        f"gunicorn workbench.wsgi:application --bind fd://{descriptor} --preload --no-control-socket "
        f"--workers {workers} --threads 4 --graceful-timeout 5"
    ).split()
    celery = "celery --quiet --app workbench"
    worker = f"{celery} worker --loglevel INFO --concurrency {concurrency} --without-gossip --without-mingle".split()
    beat = [*f"{celery} beat --loglevel INFO".split(), "--pidfile", ""]
    return [
        Part("web", [sys.executable, "-m", *gunicorn], files=[descriptor, *held]),
        # Celery's default SIGTERM waits for running tasks as long as they take; this ends them, to be redelivered.
        Part("worker", [sys.executable, "-m", *worker], {"REMAP_SIGTERM": "SIGQUIT"}, held),
        # On SIGTERM it stores its schedule; a second SIGTERM meanwhile would have it wait for itself, for ever.
        Part("beat", [sys.executable, "-m", *beat], files=held, end_by=signal.SIGKILL),
    ]


def read_processes(name: str) -> int:
    """How many processes a variable asks for; 2 without it."""
    return read_count(name, os.environ.get(name, "2"), least=1, most=1_000)


async def supervise(
    listener: socket.socket, servers: list[SharedServer], began: float, first: FirstSignIn | None
) -> None:
    """Run the parts; beside them follow the servers' logs and start again a server that has gone."""
    parts = list_parts(listener, servers)
    stream = LogStream(
        sys.stdout, [*(part.name for part in parts), *(server.spec.name for server in servers)]
    )
    supervisor = Supervisor(parts, stream)
    aside = [
        asyncio.create_task(stream.follow(server.spec.name, server.spec.log), name=server.spec.name)
        for server in servers
    ]
    aside.append(asyncio.create_task(watch_servers(servers, stream)))
    aside.append(asyncio.create_task(announce(listener, stream, began, first)))
    try:
        await supervisor.run()
    finally:
        for task in aside:
            task.cancel()
        await asyncio.gather(*aside, return_exceptions=True)


async def watch_servers(servers: list[SharedServer], stream: LogStream) -> None:
    """Start a server again when it and its keeper are gone; the keeper alone sees to the rest."""
    while True:
        await asyncio.sleep(WATCH_SECONDS)
        for server in servers:
            if server.is_running():
                continue
            stream.write("up", f"{server.spec.name} has gone; starting it again")
            try:
                server.revive()
            except ServerError as error:
                stream.write("up", str(error))


async def announce(
    listener: socket.socket, stream: LogStream, began: float, first: FirstSignIn | None
) -> None:
    """Print address and sign-in once the web server answers."""
    url = describe_url(listener)
    while not await is_answering(url):  # noqa: ASYNC110  another process is waited for, which sets no event
        await asyncio.sleep(0.2)
    lines = [f"Harness Workbench is ready at {url} after {time.monotonic() - began:.1f} s; Ctrl-C ends it."]
    if first:
        lines.append(f"Sign in as {first.username} with the password {first.password}")
        lines.append(f"(shown this once; it is kept in {first.path})")
    elif (kept := settings.VAR_DIR / "sign-in.txt").exists():
        lines.append(f"The first sign-in is kept in {kept}")
    stream.write("up", "\n".join(lines))


async def is_answering(url: str) -> bool:
    """Whether the health check says yes. Without threads: the supervisor forks, and must have only one."""
    address = urlsplit(url)
    try:
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        writer.write(f"GET /healthz HTTP/1.0\r\nHost: {address.netloc}\r\n\r\n".encode())
        status = await reader.readline()
        writer.close()
    except OSError:
        return False
    return b" 200 " in status
