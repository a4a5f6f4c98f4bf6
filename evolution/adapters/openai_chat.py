"""One OpenAI-compatible endpoint behind the ChatModel protocol, as the official client speaks it; one try per call.

Trying again, here or at another endpoint, is `routing`'s.
"""

import asyncio
import hashlib
import json
import math
import re
import time
from dataclasses import replace
from email.utils import parsedate_to_datetime
from functools import lru_cache
from typing import Any, Self

import aiohttp
import httpx2
import openai

from evolution.adapters.answer_format import FormatMemory, body_in, is_about_the_format
from evolution.adapters.completions import LONGEST_MESSAGE, classify_status, clean_text, read_reply
from evolution.adapters.endpoints import Endpoint
from evolution.adapters.event_stream import is_event_stream, join_stream
from evolution.adapters.health import LONGEST_PAUSE
from evolution.adapters.transport import LONGEST_ANSWER, Answer, Transport
from evolution.limits.tries import announce_rewording
from harness_repo.runtime.bodies import BodyRefused, BodyTooLong
from harness_repo.runtime.chat import ChatError, ChatErrorKind, ChatReply, ChatRequest
from harness_repo.runtime.hiding import hide

# What servers ask for beyond it is a mistake, such as the time of day: as if nothing had been asked.
LONGEST_WAIT = LONGEST_PAUSE
# Looks like a key wherever it stands, also when a server repeats it in an error.
_KEY = re.compile(r"\b(?:sk|pk|key|Bearer)[-_ ][A-Za-z0-9_\-*.]{6,}")
# A 400 or 422 of a server that knows no seed.
_SEED = re.compile(r"\bseed\b", re.IGNORECASE)

# What a call may end with: the client's own errors, the connection's, our limits, and a request that can't be
# written down.
FAILURES = (
    openai.OpenAIError,
    aiohttp.ClientError,
    TimeoutError,
    OSError,
    BodyRefused,
    UnicodeError,
    httpx2.InvalidURL,
)


class OpenAIChatModel:
    """A ChatModel at an endpoint. Answers, or raises ChatError; every call ends within its endpoint's time.

    Entered as an async context manager it keeps its connections until it is left; without, each call has its own.
    Each repeat is sent a seed of its own, unless the harness states one or the server does not take any.
    """

    def __init__(self, endpoint: Endpoint, memory: FormatMemory | None = None) -> None:
        self._endpoint = endpoint
        self._memory = memory or FormatMemory()
        self._transport: Transport | None = None

    @property
    def seeds(self) -> bool:
        """Whether a call is sent the seed of its repeat, where the harness states none."""
        return self._endpoint.seed

    async def __aenter__(self) -> Self:
        # One that can't be built is told by each call.
        try:
            self._transport = Transport(self._endpoint)
        except FAILURES:
            self._transport = None
        return self

    async def __aexit__(self, *_: object) -> None:
        transport, self._transport = self._transport, None
        if transport is not None:
            await transport.close()

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer the request, or raise ChatError."""
        if self._transport is not None:
            return await self._ask(self._transport, request)
        try:
            transport = Transport(self._endpoint)
        except FAILURES as failure:
            raise self._chat_error(failure) from failure
        async with transport:
            return await self._ask(transport, request)

    async def _ask(self, transport: Transport, request: ChatRequest) -> ChatReply:
        """Ask with a seed, and without when the server does not know what that is."""
        if not self._endpoint.seed or not self._memory.takes_seed or "seed" in request.parameters:
            return await self._ask_in_formats(transport, request)
        try:
            return await self._ask_in_formats(transport, with_seed(request))
        except ChatError as failure:
            if failure.kind != "refused" or not _SEED.search(str(failure)):
                raise
            await announce_rewording(failure)
        reply = await self._ask_in_formats(transport, request)
        self._memory.takes_seed = False
        return reply

    async def _ask_in_formats(self, transport: Transport, request: ChatRequest) -> ChatReply:
        """Ask in the best format that the server takes; when it takes none, its first refusal says most."""
        refusals: list[ChatError] = []
        for answer_format in self._memory.formats(request):
            if refusals:
                await announce_rewording(refusals[-1])
            try:
                reply = await self._call(transport, body_in(request, answer_format))
            except ChatError as failure:
                refusals.append(failure)
                if request.response_schema is None or not is_about_the_format(failure):
                    raise
            else:
                self._memory.keep(request, answer_format, refusals)
                return reply
        raise refusals[0]

    async def _call(self, transport: Transport, body: dict[str, Any]) -> ChatReply:
        started = time.monotonic()
        try:
            data = write_body(body)
            async with asyncio.timeout(self._endpoint.seconds):
                answer = await transport.post(data)
            if not 200 <= answer.status < 300:
                raise transport.status_error(answer)
        except FAILURES as failure:
            raise self._chat_error(failure) from failure
        return read_reply(read_answer(answer), (time.monotonic() - started) * 1000)

    def _chat_error(self, failure: Exception) -> ChatError:
        kind, retryable = classify_error(failure)
        text = hide_secrets(describe_error(failure), self._endpoint.api_key)
        return ChatError(text, kind, retryable=retryable, retry_after=retry_after(failure))


def with_seed(request: ChatRequest) -> ChatRequest:
    """The request with the seed of its repeat."""
    return replace(request, parameters={**request.parameters, "seed": seed_for(request.repeat)})


@lru_cache
def seed_for(repeat: int) -> int:
    """The seed of a repeat: 31 bits, which follow from its number alone."""
    digest = hashlib.blake2b(f"repeat {repeat}".encode(), digest_size=4).digest()
    return int.from_bytes(digest, "big") >> 1


def write_body(body: dict[str, Any]) -> bytes:
    """The JSON of a request; UnicodeError for half a surrogate pair, and ChatError for what JSON has no words for."""
    try:
        text = json.dumps(body, ensure_ascii=False, separators=(",", ":"), allow_nan=False)
    except (TypeError, ValueError, RecursionError) as failure:
        raise ChatError(f"the request can't be written as JSON: {failure}", "refused") from failure
    return text.encode()


def read_answer(answer: Answer) -> Any:
    """The JSON of a body, whatever type it claims; ChatError for what is none."""
    content_type, body = answer.headers.get("Content-Type", ""), answer.body
    try:
        return join_stream(body) if is_event_stream(content_type, body) else json.loads(body)
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError) as failure:
        text = f"the answer is not JSON but {content_type or 'of no type'}, {len(body)} bytes"
        raise ChatError(clean_text(text)[:LONGEST_MESSAGE], "bad_response", retryable=True) from failure


def classify_error(failure: Exception) -> tuple[ChatErrorKind, bool]:
    """The kind of a failed try, and whether the same call may work later."""
    match failure:
        case TimeoutError():
            return "timeout", True
        case aiohttp.InvalidURL():
            return "configuration", False
        case aiohttp.ClientError() | OSError():
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
    if isinstance(failure, TimeoutError) and not isinstance(failure, aiohttp.ClientError):
        return "the call took longer than it may"
    if isinstance(failure, BodyTooLong):
        return f"the answer is longer than {LONGEST_ANSWER} bytes"
    text = f"{type(failure).__name__}: {getattr(failure, 'message', '') or failure}".removesuffix(": ")
    if isinstance(failure, openai.APIStatusError) and failure.response.is_redirect:
        return f"{text}; the server redirects to {failure.response.headers.get('location', '')!r}"
    return text


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
