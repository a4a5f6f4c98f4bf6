"""An agent behind an HTTP endpoint: the case is POSTed as JSON, a trajectory or {"reply": "..."} comes back."""

import asyncio
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx2

from harness_repo.runtime.foreign import MOST_BYTES, case_to_json, failed_run, read_answer, shorten
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.trajectory import Trajectory

CONNECT_SECONDS = 10.0


@dataclass(frozen=True)
class HttpSettings:
    """Where the agent is; an operator's choice, never the harness's."""

    url: str
    # Of one run, from the connection to the last byte.
    seconds: float = 120.0
    # Sent with every request; may hold secrets, and is in no trajectory, error or log.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True)
class _Answer:
    status: int
    body: bytes
    location: str


class _TooMuch(Exception):
    """The answer is larger than it may be."""


class HttpRunner:
    """Implements Runner; any number of runs may be under way at once.

    As an async context manager it keeps its connections for many runs; without, each run has its own.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._client: httpx2.AsyncClient | None = None

    async def __aenter__(self) -> Self:
        self._client = self._connect()
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, failure: BaseException | None, trace: TracebackType | None
    ) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def run(self, case: RunCase) -> Trajectory:
        """Answer the case once.

        Status "runner_error" when there is no connection, no success or no trajectory; "time_limit" when it
        takes too long. A redirect is not followed, and nothing is tried again.
        """
        began = time.monotonic()
        status: int | None = None
        try:
            async with asyncio.timeout(self._settings.seconds):
                answer = await self._post(case_to_json(case))
            status = answer.status
            return _read(answer, _elapsed_ms(began))
        except TimeoutError:
            error = f"not done after {self._settings.seconds:g} seconds"
            return failed_run("time_limit", error, _describe(status), _elapsed_ms(began))
        except (httpx2.HTTPError, httpx2.InvalidURL, _TooMuch, ValueError, OSError) as failure:
            error = self._hide(str(failure) or type(failure).__name__)
            return failed_run("runner_error", error, _describe(status), _elapsed_ms(began))

    async def _post(self, case: bytes) -> _Answer:
        if self._client is not None:
            return await self._send(self._client, case)
        async with self._connect() as client:
            return await self._send(client, case)

    async def _send(self, client: httpx2.AsyncClient, case: bytes) -> _Answer:
        async with client.stream("POST", self._settings.url, content=case) as response:
            body = bytearray()
            async for chunk in response.aiter_bytes():
                body += chunk
                if len(body) > MOST_BYTES:
                    raise _TooMuch(f"the answer has more than {MOST_BYTES} bytes")
            return _Answer(response.status_code, bytes(body), response.headers.get("location", ""))

    def _connect(self) -> httpx2.AsyncClient:
        # The whole run has a time-out; a host that does not answer at all is found out sooner.
        patience = httpx2.Timeout(None, connect=min(CONNECT_SECONDS, self._settings.seconds))
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json",
            # What is small on the wire can be huge unpacked.
            "Accept-Encoding": "identity",
            "User-Agent": "harness-workbench",
            **self._settings.headers,
        }
        limits = httpx2.Limits(max_connections=None, max_keepalive_connections=32)
        return httpx2.AsyncClient(headers=headers, timeout=patience, limits=limits, follow_redirects=False)

    def _hide(self, text: str) -> str:
        """The text without the values of headers, whatever a server makes of them."""
        for value in filter(None, self._settings.headers.values()):
            text = text.replace(value, "***")
        return text


def _read(answer: _Answer, elapsed_ms: float) -> Trajectory:
    """The trajectory in an answer; ValueError says why there is none."""
    if 300 <= answer.status < 400:
        raise ValueError(f"HTTP {answer.status}: a redirect to {shorten(answer.location)!r} is not followed")
    if not 200 <= answer.status < 300:
        said = shorten(" ".join(answer.body.decode("utf-8", "replace").split()))
        raise ValueError(f"HTTP {answer.status}: {said}" if said else f"HTTP {answer.status}")
    try:
        return read_answer(answer.body, _describe(answer.status), elapsed_ms)
    except ValueError as failure:
        raise ValueError(f"the answer is no trajectory: {shorten(str(failure))}") from failure


def _describe(status: int | None) -> dict[str, Any]:
    return {"kind": "http", "status": status}


def _elapsed_ms(began: float) -> float:
    return round((time.monotonic() - began) * 1000, 2)
