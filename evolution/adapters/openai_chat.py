"""Any OpenAI-compatible endpoint behind the ChatModel protocol, through the official client."""

import json
import re
import time
from collections.abc import Mapping
from typing import Any, Self

import openai

from harness_repo.runtime.chat import ChatError, ChatErrorKind, ChatReply, ChatRequest, ToolCall, Usage

# What a harness may not set as a parameter: the runtime says these.
RESERVED = frozenset({"model", "messages", "tools", "response_format", "stream", "n"})
LONGEST_MESSAGE = 500
# More than any model reads in a call.
MOST_TOKENS = 10**9
# Looks like a key wherever it stands, also when a server repeats it in an error.
_KEY = re.compile(r"\b(?:sk|pk|key|Bearer)[-_ ][A-Za-z0-9_\-*.]{6,}")


class OpenAIChatModel:
    """A ChatModel on the official client, which retries 408, 409, 429 and 5xx and honours Retry-After.

    Entered as an async context manager it keeps its connections until it is left; without, each call has its own.
    """

    def __init__(self, base_url: str, api_key: str, *, seconds: float = 60.0, max_retries: int = 4) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._seconds = seconds
        self._max_retries = max_retries
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
        return openai.AsyncOpenAI(
            # The client insists on a key; local servers have none.
            api_key=self._api_key or "none",
            base_url=self._base_url or None,
            timeout=self._seconds,
            max_retries=self._max_retries,
        )

    async def _ask(self, client: openai.AsyncOpenAI, request: ChatRequest) -> ChatReply:
        started = time.monotonic()
        body = request_body(request)
        try:
            raw = await client.chat.completions.with_raw_response.create(
                model=request.model, messages=body.pop("messages"), extra_body=body
            )
            answer = json.loads(raw.http_response.content)
        except openai.OpenAIError as failure:
            raise self._chat_error(failure) from failure
        except (ValueError, RecursionError) as failure:
            raise ChatError("the answer is not JSON", "bad_response", retryable=True) from failure
        return read_reply(answer, (time.monotonic() - started) * 1000)

    def _chat_error(self, failure: openai.OpenAIError) -> ChatError:
        kind, retryable = classify_error(failure)
        text = f"{type(failure).__name__}: {getattr(failure, 'message', '') or failure}"
        return ChatError(hide_secrets(text, self._api_key), kind, retryable=retryable)


def request_body(request: ChatRequest) -> dict[str, Any]:
    """The chat-completions body without the model's name; the harness's parameters can't replace what is asked."""
    body = {name: value for name, value in request.parameters.items() if name not in RESERVED}
    body["messages"] = request.messages
    if request.tools:
        body["tools"] = request.tools
    if request.response_schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": request.response_schema}
    return body


def read_reply(answer: Any, latency_ms: float) -> ChatReply:
    """Read a chat completion; ChatError for one without a usable choice, and for a refusal."""
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        calls = [_read_call(call) for call in message.get("tool_calls") or []]
        content = message.get("content")
        usage = _read_usage(answer.get("usage") or {})
    except (LookupError, TypeError, AttributeError, ValueError) as failure:
        raise ChatError("the answer has no usable choice", "bad_response", retryable=True) from failure
    finish_reason = str(choice.get("finish_reason") or "stop")
    if message.get("refusal") or finish_reason == "content_filter":
        raise ChatError("the model refused to answer", "refused")
    if not isinstance(content, str) and not calls:
        raise ChatError("the answer has neither text nor tool calls", "bad_response", retryable=True)
    return ChatReply(content, calls, finish_reason, usage, str(answer.get("model") or ""), latency_ms)


def _read_call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    arguments = function.get("arguments") or ""
    # Some servers send the object itself.
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(str(call.get("id") or ""), str(function["name"]), text)


def _read_usage(usage: Mapping[str, Any]) -> Usage:
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    counts = usage.get("prompt_tokens"), usage.get("completion_tokens"), cached
    return Usage(*(_count(number) for number in counts))


def _count(number: Any) -> int:
    """A number of tokens; 0 for what is none, since a reply is not worth less for a wrong bill."""
    return int(number) if isinstance(number, int | float) and 0 <= number <= MOST_TOKENS else 0


def classify_error(failure: openai.OpenAIError) -> tuple[ChatErrorKind, bool]:
    """The kind of a client's error, and whether the same call may work later; the client has retried by then."""
    match failure:
        case openai.APITimeoutError():
            return "timeout", True
        case openai.APIConnectionError():
            return "connection", True
        case openai.RateLimitError():
            return "rate_limit", True
        case openai.APIStatusError(status_code=status):
            return _classify_status(status)
        case openai.APIResponseValidationError():
            return "bad_response", True
        case _:
            return "configuration", False


def _classify_status(status: int) -> tuple[ChatErrorKind, bool]:
    if status >= 500 or status in {408, 409}:
        return "server", True
    # Key, address or model name are wrong; anything else is about this very request.
    return ("configuration" if status in {401, 403, 404} else "refused"), False


def hide_secrets(text: str, api_key: str) -> str:
    """Shorten a text for people and take the key out of it, and whatever looks like one."""
    hidden = text.replace(api_key, "***") if api_key else text
    return _KEY.sub("***", hidden)[:LONGEST_MESSAGE]
