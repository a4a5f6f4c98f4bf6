"""Carries calls to one endpoint: what the official client would send, over aiohttp, and what comes back within limits.

The client says where a call goes and with which headers, once; per call there is nothing left of it. On this path a
call costs a third of the processor time that it costs through the client. Nothing here knows the chat format.
"""

import base64
import ssl
from collections.abc import AsyncIterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Self
from urllib.request import getproxies, proxy_bypass

import aiohttp
import httpx2
import openai
from yarl import URL

from evolution.adapters.endpoints import Endpoint
from harness_repo.runtime.bodies import unpack

# Far more than a model says in a call, unpacked.
LONGEST_ANSWER = 8_000_000
# Seconds that a connection may be idle: servers commonly close theirs after five, and what is sent at that moment
# is lost.
KEPT_IDLE = 4.0


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answered; a redirect too, for none is followed."""

    status: int
    headers: Mapping[str, str]
    body: bytes


class Transport:
    """Connections to an endpoint, within one event loop; an async context manager, which closes them."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Raises openai.OpenAIError or httpx2.InvalidURL for an endpoint that can't be asked."""
        self.client = openai.AsyncOpenAI(
            # The client insists on a key; local servers have none.
            api_key=endpoint.api_key or "none",
            base_url=endpoint.base_url or None,
            # It sends nothing itself; connections of its own would have certificates read.
            http_client=httpx2.AsyncClient(transport=httpx2.AsyncBaseTransport(), trust_env=False),
        )
        url = self.client.base_url
        self._headers = _headers(self.client, url)
        self._url = URL(_without_user(url, "chat/completions"), encoded=True)
        self._proxy = _proxy(url)
        # A queue for connections would count as time to reach the server; others say how many calls there are.
        connector = aiohttp.TCPConnector(limit=0, keepalive_timeout=KEPT_IDLE, ssl=_tls(url.scheme))
        self._session = aiohttp.ClientSession(
            connector=connector,
            # What one request was told is not carried to the next.
            cookie_jar=aiohttp.DummyCookieJar(),
            # What is small on the wire can be huge unpacked.
            auto_decompress=False,
            timeout=_times(endpoint),
        )

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections."""
        await self._session.close()
        await self.client.close()

    async def post(self, body: bytes) -> Answer:
        """Send a body and return what comes back, of any status.

        Raises BodyRefused, TimeoutError and aiohttp.ClientError, after which the connection is closed.
        """
        request = self._session.post(
            self._url,
            data=body,
            headers=self._headers,
            # A prompt goes to the server that was configured, and to no other.
            allow_redirects=False,
            proxy=self._proxy,
        )
        async with request as response:
            try:
                return Answer(response.status, response.headers, await _read(response))
            except BaseException:
                response.close()
                raise

    def status_error(self, answer: Answer) -> openai.APIStatusError:
        """The official client's error for a status that is none of success."""
        request = httpx2.Request("POST", str(self._url.with_query(None)))
        # Unpacked by now, and of another length.
        headers = {name: value for name, value in answer.headers.items() if not name.startswith("Content-")}
        response = httpx2.Response(answer.status, headers=headers, content=answer.body, request=request)
        return self.client._make_status_error_from_response(response)  # noqa: SLF001  the client offers no other way


async def _read(response: aiohttp.ClientResponse) -> bytes:
    encoding = response.headers.get("Content-Encoding", "")
    length = response.content_length
    if not encoding and length is not None and length <= LONGEST_ANSWER:
        return await response.read()
    return b"".join([piece async for piece in unpack(_chunks(response), encoding, LONGEST_ANSWER)])


async def _chunks(response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
    async for chunk in response.content.iter_any():
        yield chunk


def _headers(client: openai.AsyncOpenAI, url: httpx2.URL) -> dict[str, str]:
    named = {**client.default_headers, **client.auth_headers, "Accept-Encoding": "identity"}
    # Those that are left out stand there as an object that says so.
    headers = {name: value for name, value in named.items() if isinstance(value, str)}
    if url.username:
        # As the client does, which prefers them to the key.
        pair = base64.b64encode(f"{url.username}:{url.password}".encode()).decode()
        headers["Authorization"] = f"Basic {pair}"
    return headers


def _without_user(url: httpx2.URL, path: str) -> str:
    return str(url.copy_with(userinfo=b"", path=url.path + path))


def _times(endpoint: Endpoint) -> aiohttp.ClientTimeout:
    """Of reaching the server and without a byte from it; the whole call's time is its caller's."""
    connect = endpoint.connect_seconds
    silence = endpoint.read_seconds or endpoint.seconds
    return aiohttp.ClientTimeout(total=None, connect=connect, sock_connect=connect, sock_read=silence)


def _proxy(url: httpx2.URL) -> str | None:
    """The proxy that the environment names for an address (HTTP_PROXY, HTTPS_PROXY, ALL_PROXY, NO_PROXY)."""
    proxies = getproxies()
    proxy = proxies.get(url.scheme) or proxies.get("all")
    if not proxy or proxy_bypass(f"{url.host}:{url.port}" if url.port else url.host):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _tls(scheme: str) -> ssl.SSLContext | bool:
    return _tls_context() if scheme == "https" else True


@cache
def _tls_context() -> ssl.SSLContext:
    """Whom the official client trusts; reading the certificates takes a while."""
    return httpx2.create_ssl_context()
