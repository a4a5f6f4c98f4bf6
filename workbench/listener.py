"""The address of the web server, bound before anything is started so that a taken port is said at once."""

import errno
import os
import socket
import time


class AddressRefused(OSError):
    """Nothing can listen at the address; the message says why and what to do."""


class PortTaken(AddressRefused):
    """Another program listens at the address."""


def bind_listener(host: str, port: int, *, patience: float = 0.0) -> socket.socket:
    """Return a listening socket (port 0: any free one), inheritable by the web server.

    `patience` is how many seconds to wait for a port that is about to be free. Raises AddressRefused; PortTaken when
    it still is not.
    """
    deadline = time.monotonic() + patience
    while True:
        try:
            return _bind(host, port)
        except (OSError, UnicodeError) as error:
            if getattr(error, "errno", None) != errno.EADDRINUSE:
                raise AddressRefused(_explain(host, port, error)) from None
            if time.monotonic() >= deadline:
                what = f"port {port} on {host} is in use by another program"
                raise PortTaken(f"{what}; choose another with --port or PORT") from None
        time.sleep(0.1)


def _explain(host: str, port: int, error: OSError | UnicodeError) -> str:
    why = getattr(error, "strerror", None) or error
    if isinstance(error, PermissionError):
        return f"port {port} on {host} is not allowed to this user: choose one above 1023 with --port or PORT"
    return f"{host} can't be listened on ({why}): --host or WEB_HOST must be an address of this machine"


def _bind(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        if os.name == "posix":
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind((host, port))
        listener.listen(128)
    except OSError:
        listener.close()
        raise
    listener.set_inheritable(True)
    return listener


def describe_url(listener: socket.socket) -> str:
    """Return the address to open in a browser on this machine."""
    host, port = listener.getsockname()[:2]
    shown = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)  # noqa: S104
    return f"http://{shown}:{port}/"
