"""The chat model as the runtime sees it: OpenAI chat-completions shapes, no vendor's client."""

from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

Message = dict[str, Any]

ChatErrorKind = Literal[
    "timeout",
    "rate_limit",
    "server",
    "connection",
    "bad_response",
    "refused",
    "configuration",
    # Not asked: what may be spent is spent.
    "budget",
]


@dataclass(frozen=True)
class ChatRequest:
    """One call of a chat model; `messages` and `tools` are in chat-completions shape."""

    model: str
    messages: list[Message]
    tools: list[dict[str, Any]] = field(default_factory=list)
    # {"name": ..., "schema": JSON Schema} when the reply has to be JSON.
    response_schema: dict[str, Any] | None = None
    # Sampling parameters as the harness states them, such as temperature and max_tokens.
    parameters: dict[str, Any] = field(default_factory=dict)
    # Which of several trials of the same question this is, 0-based; endpoints are sent a seed that follows from it.
    repeat: int = 0


@dataclass(frozen=True)
class ToolCall:
    """A tool call as the model wrote it: `arguments` is JSON text and may be broken, `id` may be empty."""

    id: str
    name: str
    arguments: str


@dataclass(frozen=True)
class Usage:
    """Tokens of one call; `cached_tokens` is the part of `prompt_tokens` read from a cache."""

    prompt_tokens: int = 0
    completion_tokens: int = 0
    cached_tokens: int = 0


@dataclass(frozen=True)
class ChatReply:
    """What a model answered; `content` is None when it only calls tools."""

    content: str | None
    tool_calls: list[ToolCall] = field(default_factory=list)
    finish_reason: str = "stop"
    usage: Usage = field(default_factory=Usage)
    # The model as the server names it, which may be more exact than the one asked for.
    model: str = ""
    latency_ms: float = 0.0
    # What the model thought aloud before it answered; never a part of `content`, nor sent back to it.
    reasoning: str = ""
    # The server's name for the exact build that answered (system_fingerprint), "" where it says none.
    fingerprint: str = ""
    # What an identical call is recognised by, "" where nobody keeps answers; and whether this one was kept.
    cache_key: str = ""
    is_cached: bool = False


class ChatError(Exception):
    """A call that brought no usable reply.

    `retryable` says whether the same call may work later, `retry_after` how many seconds the server asks to wait.
    """

    def __init__(
        self,
        message: str,
        kind: ChatErrorKind,
        *,
        retryable: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.kind = kind
        self.retryable = retryable
        self.retry_after = retry_after


class ChatModel(Protocol):
    """Anything that speaks chat completions: a hosted model, a local one, the rehearsal model."""

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer the request, or raise ChatError; must not change the request's lists."""
        ...
