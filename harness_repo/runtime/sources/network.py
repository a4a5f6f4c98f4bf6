"""The one way out of here: to hosts that were granted, never to a machine's own metadata, and back in bounded size."""

import asyncio
import functools
import ipaddress
import ssl
from collections.abc import AsyncIterator, Iterable
from typing import Any

import httpcore2
import httpx2

from harness_repo.runtime.access import AccessDenied, ToolAccess
from harness_repo.runtime.sources.failure import ToolFailure

# Of one answer. What a model can read has a hundredth of this.
MOST_BYTES = 1_000_000

# Where clouds answer for the machine's own credentials, beside link-local addresses.
_METADATA = frozenset(
    map(ipaddress.ip_address, ("100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254"))
)


def build_client(access: ToolAccess, seconds: float | None = None) -> httpx2.AsyncClient:
    """A client that reaches what `access` grants: no proxy, no redirect, no cookie file, no compression.

    Requests raise AccessDenied, and ToolFailure for an answer beyond MOST_BYTES, beside the client's own errors.
    """
    return httpx2.AsyncClient(
        transport=_Transport(access),
        headers={"Accept-Encoding": "identity"},
        timeout=seconds,
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
        self._hosts = {httpx2.URL(origin).host for origin in access.hosts}

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
        allowed = [address for address in addresses if not is_forbidden(address) or address in self._hosts]
        if addresses and not allowed:
            raise AccessDenied(f"{host} leads to an address that tools may not reach")
        return allowed


def is_forbidden(address: str) -> bool:
    """Whether an address is link-local, a cloud's metadata service, or no host's: reached only when granted as such."""
    read = ipaddress.ip_address(address.split("%", 1)[0])
    if isinstance(read, ipaddress.IPv6Address):
        # ::ffff:a.b.c.d, and the two ways of writing an IPv4 address that gateways translate.
        inner = read.ipv4_mapped or read.sixtofour
        if read in ipaddress.IPv6Network("64:ff9b::/96"):
            inner = ipaddress.IPv4Address(int(read) & 0xFFFFFFFF)
        if inner is not None:
            return is_forbidden(str(inner))
    return read.is_link_local or read.is_multicast or read.is_unspecified or read in _METADATA


@functools.cache
def tls_context() -> ssl.SSLContext:
    """What certificates are checked against, read once: that takes longer than a call."""
    return httpx2.create_ssl_context()
