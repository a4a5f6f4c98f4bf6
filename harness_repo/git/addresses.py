"""Addresses of other repositories, and what an operator allows for one: decided before git sees any of it."""

import re
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from harness_repo.git.errors import BadRemote

PROTOCOLS = ("file", "https", "ssh", "http")
LOOPBACK = ("127.0.0.1", "::1", "localhost")

_UNPRINTABLE = re.compile(r"[\x00-\x20\x7f]")
# `ext::sh -c ...` and the like: git would start a program of that name.
_HELPER = re.compile(r"[A-Za-z0-9+.-]*::")
_HOST = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")
# At most one @, and that before the host: where there are more, nobody knows where a secret ends.
_PLAIN_URL = re.compile(
    r"(?P<scheme>[A-Za-z]+)://(?:[^/@?#\s]*@)?(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]*)(?::[0-9]+)?(?:[/?#][^@]*)?"
)
_SSH_SHORT = re.compile(r"(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)@)?(?P<host>[^/:@]+):(?P<path>[^:].*)")


@dataclass(frozen=True)
class RemotePolicy:
    """What an operator allows for one remote: its protocols (file, https, ssh, http), and how it is signed in to."""

    protocols: tuple[str, ...] = ("file",)
    # A token for https; it never stands in an argument, an error or a configuration.
    token: str = field(default="", repr=False)
    user: str = "x-access-token"
    # Files for ssh; empty: what ssh finds itself.
    ssh_key: str = ""
    known_hosts: str = ""
    # How long one fetch or push may take.
    seconds: float = 300.0

    def __post_init__(self) -> None:
        unknown = sorted(set(self.protocols) - set(PROTOCOLS))
        if unknown:
            raise BadRemote(f"not a protocol for a remote: {', '.join(unknown)}")


@dataclass(frozen=True)
class Address:
    """An address that may be given to git."""

    text: str
    protocol: str
    # For https and http: scheme, host and port, which a token is sent to and nobody else.
    origin: str = ""


def check_address(address: str, policy: RemotePolicy) -> Address:
    """Read the address of a repository, a folder or a URL; BadRemote when it is hostile or not allowed.

    No message repeats more of it than the protocol and the host: people put secrets everywhere.
    """
    if not address or address.startswith("-") or "\0" in address or _HELPER.match(address):
        raise _refusal(address)
    if "://" in address:
        found = _check_url(address)
    elif (short := _SSH_SHORT.fullmatch(address)) and not _exists(address):
        found = _check_short(address, short)
    else:
        found = Address(str(Path(address).absolute()), "file")
    if found.protocol not in policy.protocols:
        allowed = ", ".join(policy.protocols)
        raise BadRemote(f"{_shown_protocol(found)} is not allowed for {_shown(address)}; allowed: {allowed}")
    if policy.token and found.protocol == "http" and urlsplit(address).hostname not in LOOPBACK:
        raise BadRemote(f"a token is not sent to {_shown(address)}: the connection can be read on the way")
    return found


def _check_url(address: str) -> Address:
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError:
        raise _refusal(address) from None
    if url.password is not None:
        raise _refusal(address, "; a password belongs in the policy's token")
    if _UNPRINTABLE.search(address) or not url.path or url.query or url.fragment:
        raise _refusal(address)
    if url.scheme == "file":
        if url.netloc:
            raise _refusal(address, ": a file is on this machine")
        return Address(address, "file")
    _check_host(url, address)
    name = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    origin = f"{url.scheme}://{name}:{port}" if port else f"{url.scheme}://{name}"
    return Address(address, url.scheme, origin)


def _check_host(url: SplitResult, address: str) -> None:
    host = url.hostname or ""
    is_named = _HOST.fullmatch(host) is not None or (":" in host and url.netloc.rpartition("@")[2][:1] == "[")
    # Only ssh tells its user in the address.
    has_bad_user = url.username is not None and (url.scheme != "ssh" or not _HOST.fullmatch(url.username))
    if not is_named or has_bad_user:
        raise _refusal(address)


def _check_short(address: str, short: "re.Match[str]") -> Address:
    is_helper = "::" in address.partition("/")[0]
    if (
        is_helper
        or not _HOST.fullmatch(short["host"])
        or short["path"].startswith("-")
        or _UNPRINTABLE.search(address)
    ):
        raise _refusal(address)
    return Address(address, "ssh")


def _exists(address: str) -> bool:
    try:
        return Path(address).exists()
    except OSError:
        return False


def _refusal(address: str, hint: str = "") -> BadRemote:
    return BadRemote(f"not an address of a repository: {_shown(address)}{hint}")


def _shown_protocol(found: Address) -> str:
    return found.protocol if found.protocol in PROTOCOLS else "its protocol"


def _shown(address: str) -> str:
    """The protocol and the host, each only when it is certain that it is one."""
    url = _PLAIN_URL.fullmatch(address)
    if url is not None and url["scheme"].lower() in PROTOCOLS:
        return f"{url['scheme'].lower()}://{url['host']}"
    scheme = address.partition("://")[0].lower()
    return f"{scheme}://..." if "://" in address and scheme in PROTOCOLS else "(not shown)"
