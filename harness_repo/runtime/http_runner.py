"""An agent behind an HTTP endpoint: the case is POSTed as JSON, a trajectory or {"reply": "..."} comes back."""

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

import httpx2

from harness_repo.runtime.bodies import BodyRefused, no_cookies, unpack
from harness_repo.runtime.elapsed import ms_since
from harness_repo.runtime.foreign import (
    MOST_BYTES,
    case_to_json,
    failed_run,
    hide_in_run,
    read_answer,
    shorten,
)
from harness_repo.runtime.hiding import hide
from harness_repo.runtime.runner import RunCase
from harness_repo.runtime.trajectory import Trajectory

CONNECT_SECONDS = 10.0
# Of an error, before secrets are hidden and it is shortened.
_MOST_SAID = 20_000
# Words of a header that are as long may be secrets; "Bearer" is none.
SHORTEST_SECRET = 8


@dataclass(frozen=True)
class HttpSettings:
    """Where the agent is; an operator's choice, never the harness's."""

    url: str
    # Of one run, from the connection to the last byte.
    seconds: float = 120.0
    # Sent with every request; may hold secrets.
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    # What stands in no trajectory, error or log, wherever a server puts it; None is every value of a header, whole
    # and each of its longer words.
    secrets: Sequence[str] | None = field(default=None, repr=False)

    def hidden(self) -> list[str]:
        """The texts to hide."""
        if self.secrets is not None:
            return list(self.secrets)
        words = [word for value in self.headers.values() for word in value.split()]
        return [*self.headers.values(), *(word for word in words if len(word) >= SHORTEST_SECRET)]


@dataclass(frozen=True)
class _Answer:
    status: int
    body: bytes
    location: str


class HttpRunner:
    """Implements Runner; any number of runs may be under way at once.

    As an async context manager it keeps its connections for many runs; without, each run has its own.
    """

    def __init__(self, settings: HttpSettings) -> None:
        self._settings = settings
        self._secrets = settings.hidden()
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
        takes too long. A redirect is not followed, and nothing is tried again; no cookie is kept.
        """
        began = time.monotonic()
        status: int | None = None
        try:
            async with asyncio.timeout(self._settings.seconds):
                answer = await self._post(case_to_json(case))
            status = answer.status
            return await asyncio.to_thread(_read, answer, ms_since(began), self._secrets)
        except TimeoutError:
            error = f"not done after {self._settings.seconds:g} seconds"
            return failed_run("time_limit", error, _describe(status), ms_since(began))
        except (httpx2.HTTPError, httpx2.InvalidURL, BodyRefused, ValueError, OSError) as failure:
            error = shorten(hide(str(failure)[:_MOST_SAID], self._secrets)) or type(failure).__name__
            return failed_run("runner_error", error, _describe(status), ms_since(began))

    async def _post(self, case: bytes) -> _Answer:
        if self._client is not None:
            return await self._send(self._client, case)
        async with self._connect() as client:
            return await self._send(client, case)

    async def _send(self, client: httpx2.AsyncClient, case: bytes) -> _Answer:
        async with client.stream("POST", self._settings.url, content=case) as response:
            body = bytearray()
            encoding = response.headers.get("content-encoding", "")
            async for chunk in unpack(response.aiter_raw(), encoding, MOST_BYTES):
                body += chunk
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
        return httpx2.AsyncClient(
            headers=headers,
            timeout=patience,
            limits=limits,
            cookies=no_cookies(),
            follow_redirects=False,
        )


def _read(answer: _Answer, elapsed_ms: float, secrets: Sequence[str]) -> Trajectory:
    """The trajectory in an answer, without secrets; ValueError says why there is none, and may hold some."""
    if 300 <= answer.status < 400:
        raise ValueError(f"HTTP {answer.status}: a redirect to {answer.location!r} is not followed")
    if not 200 <= answer.status < 300:
        said = " ".join(answer.body[:_MOST_SAID].decode("utf-8", "replace").split())
        raise ValueError(f"HTTP {answer.status}: {said}" if said else f"HTTP {answer.status}")
    try:
        return hide_in_run(read_answer(answer.body, _describe(answer.status), elapsed_ms), secrets)
    except ValueError as failure:
        raise ValueError(f"the answer is no trajectory: {failure}") from failure


def _describe(status: int | None) -> dict[str, Any]:
    return {"kind": "http", "status": status}
