"""Which embedded servers a process needs, and holding them for as long as it needs them."""

import contextlib
from collections.abc import Iterator, Sequence

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
    return words[0] != "check" or "--database" in words


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
