"""What the tools of a harness may reach: nothing, until an operator has said so.

A model drafts tool files. A URL or a command in one of them is therefore only a wish; hosts, commands and secrets
are granted here, outside the harness.
"""

import ipaddress
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import httpx2

from harness_repo.format.tool_sources import SECRET

_PORTS = {"https": 443, "http": 80}

Network = ipaddress.IPv4Network | ipaddress.IPv6Network


class AccessDenied(Exception):
    """Something that was not granted; the text says what, and holds no secret."""


@dataclass(frozen=True)
class Secret:
    """A named value for the headers of tool calls, which goes to its own hosts and nowhere else."""

    value: str = field(repr=False)
    # As ToolAccess.hosts.
    hosts: frozenset[str] = frozenset()

    def __post_init__(self) -> None:
        # Anything else could not stand in a header, and the client's error would say it in full.
        if not self.value or not self.value.isascii() or not self.value.isprintable():
            raise ValueError("a secret has to be a text of printable ASCII characters")
        object.__setattr__(self, "hosts", frozenset(map(_read_host, self.hosts)))


@dataclass(frozen=True)
class ToolAccess:
    """What an operator grants to tools of the kinds http and mcp. ValueError for a host that is none."""

    # "name" and "name:port" are reached by https only, "http://name:port" without encryption; no wildcards.
    # "10.1.0.0/16" is no host: it says that the names may lead to addresses in there, which they may not otherwise.
    hosts: frozenset[str] = frozenset()
    # Whole command lines of MCP servers, word for word.
    commands: frozenset[tuple[str, ...]] = frozenset()
    secrets: Mapping[str, Secret] = field(default_factory=dict)
    # Why no tool goes out at all, whatever was granted; "" when what was granted holds.
    refusal: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "hosts", frozenset(map(_read_grant, self.hosts)))

    @property
    def networks(self) -> list[Network]:
        """The addresses beside public ones that names may lead to."""
        return [ipaddress.ip_network(host) for host in self.hosts if "://" not in host]

    def check_url(self, url: str) -> None:
        """Raise AccessDenied unless the host of the URL was granted."""
        origin = origin_of(url)
        if origin not in self.hosts:
            raise AccessDenied(f"{origin} is not a host that tools may reach")

    def check_command(self, command: Sequence[str]) -> None:
        """Raise AccessDenied unless exactly this command line was granted."""
        if tuple(command) not in self.commands:
            raise AccessDenied(
                f"the command {command[0]!r} with these arguments is not one that tools may start"
            )

    def check_source(self, source: Mapping[str, Any]) -> None:
        """Raise AccessDenied unless all that a tool's source asks for was granted."""
        if self.refusal:
            raise AccessDenied(self.refusal)
        if "command" in source:
            self.check_command(source["command"])
            return
        url = without_placeholders(source["url"])
        self.check_url(url)
        self.fill_headers(source.get("headers", {}), url)

    def fill_headers(self, headers: Mapping[str, str], url: str) -> dict[str, str]:
        """The headers with their secrets, for a request to that URL. Raises AccessDenied."""
        origin = origin_of(url)
        return {
            name: SECRET.sub(lambda found: self._secret(found.group(1), origin), value)
            for name, value in headers.items()
        }

    def secrets_of(self, source: Mapping[str, Any]) -> list[str]:
        """The values of the secrets that a source names, to keep them out of what comes back."""
        names = [name for value in source.get("headers", {}).values() for name in SECRET.findall(value)]
        return [self.secrets[name].value for name in names if name in self.secrets]

    def _secret(self, name: str, origin: str) -> str:
        secret = self.secrets.get(name)
        if secret is None:
            raise AccessDenied(f"there is no secret {name}")
        if origin not in secret.hosts:
            raise AccessDenied(f"the secret {name} may not go to {origin}")
        return secret.value


def origin_of(url: str) -> str:
    """Scheme, host and port of a URL, the port always written out. Raises AccessDenied when it has none."""
    try:
        read = httpx2.URL(url)
    except (httpx2.InvalidURL, ValueError):
        raise AccessDenied("not a URL") from None
    if read.scheme not in _PORTS or not read.host or read.userinfo:
        raise AccessDenied("not the URL of a host that can be granted")
    host = f"[{read.host}]" if ":" in read.host else read.host
    return f"{read.scheme}://{host}:{read.port or _PORTS[read.scheme]}"


def without_placeholders(template: str) -> str:
    """The URL of a template as far as its host goes, which no argument can change."""
    scheme, rest = template.split("://", 1)
    return f"{scheme}://{rest.split('/', 1)[0].split('?', 1)[0]}"


def _read_grant(text: str) -> str:
    """A host as its origin, or a network as it is. Raises ValueError."""
    address, mark, length = text.strip().partition("/")
    if not mark or not length.isdecimal():
        return _read_host(text)
    try:
        return str(ipaddress.ip_network(f"{address.strip('[]')}/{length}"))
    except ValueError as failure:
        raise ValueError(f"{text!r} is no network: {failure}") from None


def _read_host(host: str) -> str:
    text = host.strip()
    try:
        url = httpx2.URL(text if "://" in text else f"https://{text}")
        origin = origin_of(str(url))
    except (AccessDenied, httpx2.InvalidURL, ValueError):
        raise ValueError(f"{host!r} is not a host; write NAME, NAME:PORT or http://NAME:PORT") from None
    if re.search(r"[*%\s]", url.host) or url.raw_path != b"/" or url.fragment:
        raise ValueError(f"{host!r} is more or less than a host; write NAME, NAME:PORT or http://NAME:PORT")
    return origin


NO_ACCESS = ToolAccess()
