"""The one way out of here: to hosts that were granted, never to a machine's own metadata, and back in bounded size."""

import asyncio
import functools
import ipaddress
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpcore2
import httpx2

from harness_repo.runtime.access import AccessDenied, Network, ToolAccess
from harness_repo.runtime.sources.failure import ToolFailure

# Of one answer. What a model can read has a hundredth of this.
MOST_BYTES = 1_000_000

# Where clouds answer for the machine's own credentials, beside link-local addresses.
_METADATA = [
    ipaddress.ip_network(network)
    for network in (
        "100.100.100.200/32",
        "168.63.129.16/32",
        "192.0.0.192/32",
        "fd00:ec2::/32",
        "fd20:ce::/32",
        "fd00:c1::/32",
    )
]
# All that has been given out so far; the rest is private, special, or another way of writing an IPv4 address.
_GIVEN_OUT = ipaddress.IPv6Network("2000::/3")
_TRANSLATED = ipaddress.IPv6Network("64:ff9b::/96")

_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def build_client(access: ToolAccess, patience: httpx2.Timeout | None = None) -> httpx2.AsyncClient:
    """A client that reaches what `access` grants: no proxy, no redirect, no cookie file, no compression.

    Requests raise AccessDenied, and ToolFailure for an answer beyond MOST_BYTES, beside the client's own errors.
    """
    return httpx2.AsyncClient(
        transport=_Transport(access),
        headers={"Accept-Encoding": "identity"},
        timeout=patience,
        follow_redirects=False,
        trust_env=False,
    )


class _Transport(httpx2.AsyncHTTPTransport):
    """Checks each request before it leaves, wherever in the client it comes from."""

    def __init__(self, access: ToolAccess) -> None:
        super().__init__(verify=tls_context(), trust_env=False)
        self._access = access
        # The library has no option for the backend, which is where addresses are known.
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=tls_context(), network_backend=_Backend(access)
        )

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        self._access.check_url(str(request.url))
        response = await super().handle_async_request(request)
        if response.headers.get("content-encoding", "identity") != "identity":
            await response.aclose()
            raise ToolFailure("malformed_result", "the answer is compressed, which was not asked for")
        response.stream = _Bounded(response.stream)
        return response


class _Bounded(httpx2.AsyncByteStream):
    """A body that ends with a failure beyond MOST_BYTES."""

    def __init__(self, inner: Any) -> None:
        self._inner = inner

    async def __aiter__(self) -> AsyncIterator[bytes]:
        size = 0
        async for chunk in self._inner:
            size += len(chunk)
            if size > MOST_BYTES:
                raise ToolFailure("malformed_result", f"the answer has more than {MOST_BYTES} bytes")
            yield chunk

    async def aclose(self) -> None:
        await self._inner.aclose()


class _Backend(httpcore2.AnyIOBackend):
    """Connects to an address that it has looked at itself, so that a name cannot mean another one a moment later."""

    def __init__(self, access: ToolAccess) -> None:
        self._networks = access.networks

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  the library's signature
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        failure: Exception | None = None
        for address in await self._addresses(host, port):
            try:
                return await super().connect_tcp(address, port, timeout, local_address, socket_options)
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as refused:
                failure = refused
        raise failure or httpcore2.ConnectError("the host's name has no address")

    async def _addresses(self, host: str, port: int) -> list[str]:
        try:
            found = await asyncio.get_running_loop().getaddrinfo(host, port, type=1)
        except OSError as failure:
            raise httpcore2.ConnectError(str(failure)) from failure
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        allowed = [address for address in addresses if may_lead_to(host, address, self._networks)]
        if addresses and not allowed:
            raise AccessDenied(f"{host} leads to an address that tools may not reach")
        return allowed


def may_lead_to(host: str, address: str, networks: Iterable[Network] = ()) -> bool:
    """Whether a host that was granted may be reached at an address that its name has.

    A host written as an address was granted as that one. "localhost" leads to the loopback, every other name to public
    addresses and to those in `networks`; no name to what is link-local or a cloud's metadata.
    """
    if _read_address(host) is not None:
        return True
    found = _read_address(address)
    if found is None or _is_machines_own(found):
        return False
    if host == "localhost" or host.endswith(".localhost"):
        return found.is_loopback
    return _is_public(found) or any(found in network for network in networks)


def _read_address(text: str) -> _Address | None:
    """The address, without a zone, and as IPv4 where it stands for one; None if it is none."""
    try:
        read = ipaddress.ip_address(text.split("%", 1)[0])
    except ValueError:
        return None
    if isinstance(read, ipaddress.IPv4Address):
        return read
    inner = read.ipv4_mapped or read.sixtofour or (read.teredo or (None, None))[1]
    # ::a.b.c.d, which is no more in use, and what gateways translate.
    is_old = int(read) >> 32 == 0 and int(read) > 1
    return ipaddress.IPv4Address(int(read) & 0xFFFFFFFF) if is_old or read in _TRANSLATED else inner or read


def _is_machines_own(address: _Address) -> bool:
    is_special = address.is_link_local or address.is_multicast or address.is_unspecified
    return is_special or any(address in network for network in _METADATA)


def _is_public(address: _Address) -> bool:
    return address.is_global and (address.version == 4 or address in _GIVEN_OUT)


@functools.cache
def tls_context() -> ssl.SSLContext:
    """What certificates are checked against, read once: that takes longer than a call."""
    return httpx2.create_ssl_context()
