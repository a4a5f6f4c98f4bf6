"""Which embedded servers a process needs, and holding them for as long as it needs them."""

import argparse
import contextlib
from collections.abc import Iterator, Sequence
from pathlib import Path

from django.conf import settings

from workbench.embedded.postgres import postgres_server
from workbench.embedded.shared import SharedServer
from workbench.embedded.valkey import valkey_server

# Commands that never touch the database, and `up`, which holds the servers itself.
WITHOUT_SERVERS = frozenset(
    {
        "collectstatic",
        "compilemessages",
        "diffsettings",
        "findstatic",
        "help",
        "makemessages",
        "startapp",
        "startproject",
        "up",
        "version",
    }
)


def needs_servers(arguments: Sequence[str]) -> bool:
    """Whether the command line `arguments` (program name first) wants a database."""
    words = arguments[1:]
    if not words or words[0] in WITHOUT_SERVERS or {"--help", "-h", "--version"} & set(words):
        return False
    if words[0] == "check_harness":
        return not _checks_a_path(words[1:])
    return words[0] != "check" or "--database" in words


def _checks_a_path(words: Sequence[str]) -> bool:
    """Whether `check_harness` is given a path: then it needs no database, nor does what is wrong with its options."""
    parser = argparse.ArgumentParser(add_help=False, exit_on_error=False)
    parser.add_argument("target", nargs="?", default="")
    parser.add_argument("--ref")
    try:
        target = parser.parse_known_args(list(words))[0].target
    except argparse.ArgumentError:
        return True
    return not target or "/" in target or Path(target).exists()


def embedded_servers() -> list[SharedServer]:
    """List the servers that no setting replaces by a real one."""
    servers = []
    if settings.EMBEDDED_DATABASE:
        servers.append(postgres_server(settings.VAR_DIR))
    if settings.EMBEDDED_BROKER:
        servers.append(valkey_server(settings.VAR_DIR))
    return servers


@contextlib.contextmanager
def share_servers() -> Iterator[None]:
    """Hold the embedded servers for the length of a block."""
    with contextlib.ExitStack() as stack:
        for server in embedded_servers():
            stack.enter_context(server.in_use())
        yield
