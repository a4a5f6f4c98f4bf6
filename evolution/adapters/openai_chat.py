"""One OpenAI-compatible endpoint behind the ChatModel protocol, through the official client; one try per call.

Trying again, here or at another endpoint, is `routing`'s.
"""

import asyncio
import json
import math
import re
import time
from collections.abc import AsyncIterator
from email.utils import parsedate_to_datetime
from typing import Any, Self

import httpx2
import openai

from evolution.adapters.answer_format import FormatMemory, body_in, is_about_the_format
from evolution.adapters.completions import LONGEST_MESSAGE, classify_status, clean_text, read_reply
from evolution.adapters.endpoints import Endpoint
from evolution.adapters.event_stream import is_event_stream, join_stream
from evolution.adapters.health import LONGEST_PAUSE
from harness_repo.runtime.bodies import BodyRefused, BodyTooLong, no_cookies, unpack
from harness_repo.runtime.chat import ChatError, ChatErrorKind, ChatReply, ChatRequest
from harness_repo.runtime.hiding import hide

# Far more than a model says in a call, unpacked.
LONGEST_ANSWER = 8_000_000
# What servers ask for beyond it is a mistake, such as the time of day: as if nothing had been asked.
LONGEST_WAIT = LONGEST_PAUSE
# Looks like a key wherever it stands, also when a server repeats it in an error.
_KEY = re.compile(r"\b(?:sk|pk|key|Bearer)[-_ ][A-Za-z0-9_\-*.]{6,}")


# What a call may end with: the client's own errors, our limits, and a request that can't be written down.
FAILURES = (openai.OpenAIError, TimeoutError, BodyRefused, UnicodeError, httpx2.InvalidURL)


class OpenAIChatModel:
    """A ChatModel on the official client. Answers, or raises ChatError; every call ends within its endpoint's time.

    Entered as an async context manager it keeps its connections until it is left; without, each call has its own.
    """

    def __init__(self, endpoint: Endpoint, memory: FormatMemory | None = None) -> None:
        self._endpoint = endpoint
        self._memory = memory or FormatMemory()
        self._client: openai.AsyncOpenAI | None = None

    async def __aenter__(self) -> Self:
        self._client = self._build_client()
        return self

    async def __aexit__(self, *_: object) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.close()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer the request, or raise ChatError."""
        if self._client is not None:
            return await self._ask(self._client, request)
        async with self._build_client() as client:
            return await self._ask(client, request)

    def _build_client(self) -> openai.AsyncOpenAI:
        endpoint = self._endpoint
        times = httpx2.Timeout(endpoint.read_seconds or endpoint.seconds, connect=endpoint.connect_seconds)
        return openai.AsyncOpenAI(
            # The client insists on a key; local servers have none.
            api_key=endpoint.api_key or "none",
            base_url=endpoint.base_url or None,
            timeout=times,
            max_retries=0,
            http_client=openai.DefaultAsyncHttpxClient(
                # A prompt goes to the server that was configured, and to no other.
                follow_redirects=False,
                # What is small on the wire can be huge unpacked.
                headers={"Accept-Encoding": "identity"},
                cookies=no_cookies(),
                event_hooks={"response": [_limit_answer]},
            ),
        )

    async def _ask(self, client: openai.AsyncOpenAI, request: ChatRequest) -> ChatReply:
        """Ask in the best format that the server takes; when it takes none, its first refusal says most."""
        refusals: list[ChatError] = []
        for answer_format in self._memory.formats(request):
            try:
                reply = await self._call(client, body_in(request, answer_format))
            except ChatError as failure:
                refusals.append(failure)
                if request.response_schema is None or not is_about_the_format(failure):
                    raise
            else:
                self._memory.keep(request, answer_format, refusals)
                return reply
        raise refusals[0]

    async def _call(self, client: openai.AsyncOpenAI, body: dict[str, Any]) -> ChatReply:
        started = time.monotonic()
        try:
            async with asyncio.timeout(self._endpoint.seconds):
                response = await client.post("/chat/completions", body=body, cast_to=httpx2.Response)
        except FAILURES as failure:
            raise self._chat_error(failure) from failure
        return read_reply(read_answer(response), (time.monotonic() - started) * 1000)

    def _chat_error(self, failure: Exception) -> ChatError:
        kind, retryable = classify_error(failure)
        text = hide_secrets(describe_error(failure), self._endpoint.api_key)
        return ChatError(text, kind, retryable=retryable, retry_after=retry_after(failure))


def read_answer(response: httpx2.Response) -> Any:
    """The JSON of a body, whatever type it claims; ChatError for what is none."""
    content_type, body = response.headers.get("content-type", ""), response.content
    try:
        return join_stream(body) if is_event_stream(content_type, body) else json.loads(body)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as failure:
        text = f"the answer is not JSON but {content_type or 'of no type'}, {len(body)} bytes"
        raise ChatError(clean_text(text)[:LONGEST_MESSAGE], "bad_response", retryable=True) from failure


async def _limit_answer(response: httpx2.Response) -> None:
    """Have the body unpacked here, up to a length, before the client unpacks it without one."""
    if isinstance(response.stream, httpx2.AsyncByteStream):
        encoding = response.headers.pop("content-encoding", "")
        response.stream = _LimitedStream(response.stream, encoding)


class _LimitedStream(httpx2.AsyncByteStream):
    """A body, unpacked; BodyRefused when it is too long or cannot be unpacked."""

    def __init__(self, stream: httpx2.AsyncByteStream, encoding: str) -> None:
        self._stream = stream
        self._encoding = encoding

    async def __aiter__(self) -> AsyncIterator[bytes]:
        async for chunk in unpack(self._stream, self._encoding, LONGEST_ANSWER):
            yield chunk

    async def aclose(self) -> None:
        await self._stream.aclose()


def classify_error(failure: Exception) -> tuple[ChatErrorKind, bool]:
    """The kind of a failed try, and whether the same call may work later."""
    match failure:
        case TimeoutError() | openai.APITimeoutError():
            return "timeout", True
        case openai.APIConnectionError():
            return "connection", True
        case openai.APIStatusError(status_code=status, code=code):
            # No money left is a 429 too, and waiting brings none.
            return ("configuration", False) if code == "insufficient_quota" else classify_status(status)
        case BodyRefused():
            return "bad_response", True
        case _:
            # Half a surrogate pair in a message: no server can be sent that.
            return ("refused" if isinstance(failure, UnicodeError) else "configuration"), False


def describe_error(failure: Exception) -> str:
    """What went wrong, for people; may still hold a key."""
    if isinstance(failure, TimeoutError):
        return "the call took longer than it may"
    if isinstance(failure, BodyTooLong):
        return f"the answer is longer than {LONGEST_ANSWER} bytes"
    text = f"{type(failure).__name__}: {getattr(failure, 'message', '') or failure}"
    if isinstance(failure, openai.APIStatusError) and failure.response.is_redirect:
        return f"{text}; the server redirects to {failure.response.headers.get('location', '')!r}"
    cause = failure.__cause__ if isinstance(failure, openai.APIConnectionError) else None
    return f"{text} ({type(cause).__name__}: {cause})" if cause else text


def retry_after(failure: Exception) -> float | None:
    """The seconds that a server asks to wait, in one of its three ways; None when it does not, or not sensibly."""
    if not isinstance(failure, openai.APIStatusError):
        return None
    headers = failure.response.headers
    for name, unit in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        seconds = _number(headers.get(name, "")) * unit
        if math.isfinite(seconds) and seconds >= 0:
            return _sensible(seconds)
    try:
        moment = parsedate_to_datetime(headers.get("retry-after", ""))
        return _sensible(max(moment.timestamp() - time.time(), 0.0))
    # Whatever the parser makes of a date that is none.
    except Exception:  # noqa: BLE001
        return None


def _sensible(seconds: float) -> float | None:
    return seconds if seconds <= LONGEST_WAIT else None


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def hide_secrets(text: str, api_key: str) -> str:
    """Shorten a text for people and take the key out of it, and whatever looks like one."""
    # Errors quote bodies, which may be long; nobody is shown so much of them.
    hidden = hide(text[: 10 * LONGEST_MESSAGE], [api_key])
    return clean_text(_KEY.sub("***", hidden))[:LONGEST_MESSAGE]
