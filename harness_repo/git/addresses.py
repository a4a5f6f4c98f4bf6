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
    """Read the address of a repository, a folder or a URL; BadRemote when it is hostile or not allowed."""
    hidden = _hide_secret(address)
    if not address or address.startswith("-") or _HELPER.match(address):
        raise BadRemote(f"not an address of a repository: {hidden!r}")
    if "://" in address:
        found = _check_url(address, hidden)
    elif (short := _SSH_SHORT.fullmatch(address)) and not Path(address).exists():
        found = _check_short(address, short)
    else:
        found = Address(str(Path(address).absolute()), "file")
    if found.protocol not in policy.protocols:
        raise BadRemote(
            f"{found.protocol} is not allowed for {hidden!r}; allowed: {', '.join(policy.protocols)}"
        )
    if policy.token and found.protocol == "http" and urlsplit(address).hostname not in LOOPBACK:
        raise BadRemote(f"a token is not sent to {hidden!r}: the connection can be read on the way")
    return found


def _check_url(address: str, hidden: str) -> Address:
    try:
        url = urlsplit(address)
        port = url.port
    except ValueError as failure:
        raise BadRemote(f"not an address of a repository: {hidden!r}") from failure
    if _UNPRINTABLE.search(address) or not url.path or url.password is not None or url.query or url.fragment:
        hint = "; a password belongs in the policy's token" if url.password is not None else ""
        raise BadRemote(f"not an address of a repository: {hidden!r}{hint}")
    if url.scheme == "file":
        if url.netloc:
            raise BadRemote(f"not a folder of this machine: {hidden!r}")
        return Address(address, "file")
    _check_host(url, hidden)
    name = f"[{url.hostname}]" if ":" in (url.hostname or "") else url.hostname
    origin = f"{url.scheme}://{name}:{port}" if port else f"{url.scheme}://{name}"
    return Address(address, url.scheme, origin)


def _check_host(url: SplitResult, hidden: str) -> None:
    host = url.hostname or ""
    is_named = _HOST.fullmatch(host) is not None or (":" in host and url.netloc.rpartition("@")[2][:1] == "[")
    # Only ssh tells its user in the address.
    has_bad_user = url.username is not None and (url.scheme != "ssh" or not _HOST.fullmatch(url.username))
    if not is_named or has_bad_user:
        raise BadRemote(f"not an address of a repository: {hidden!r}")


def _check_short(address: str, short: "re.Match[str]") -> Address:
    if not _HOST.fullmatch(short["host"]) or short["path"].startswith("-") or _UNPRINTABLE.search(address):
        raise BadRemote(f"not an address of a repository: {address!r}")
    return Address(address, "ssh")


def _hide_secret(address: str) -> str:
    """The address without what stands before the host, for messages."""
    return re.sub(r"//[^/@]*@", "//***@", address)
