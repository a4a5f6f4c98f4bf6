"""The chat-completions format: the body of a request, and a reply out of whatever a server makes of the format."""

import json
from collections.abc import Mapping
from typing import Any

from evolution.adapters.reasoning import split_reasoning
from evolution.ports import RESERVED_PARAMETERS
from harness_repo.runtime.chat import ChatError, ChatErrorKind, ChatReply, ChatRequest, ToolCall, Usage

# More than any model reads in a call.
MOST_TOKENS = 10**9
LONGEST_MESSAGE = 500


def request_body(request: ChatRequest) -> dict[str, Any]:
    """The chat-completions body; the harness's parameters can't replace what is asked."""
    body = {name: value for name, value in request.parameters.items() if name not in RESERVED_PARAMETERS}
    body |= {"model": request.model, "messages": request.messages}
    if request.tools:
        body["tools"] = request.tools
    if request.response_schema is not None:
        body["response_format"] = {"type": "json_schema", "json_schema": request.response_schema}
    return body


def read_reply(answer: Any, latency_ms: float) -> ChatReply:
    """Read a chat completion; ChatError for one without a usable choice, and for a refusal.

    What the model thought aloud is in `reasoning`, wherever the server put it.
    """
    _refuse_error(answer)
    try:
        choice = answer["choices"][0]
        message = choice["message"]
        calls = [_read_call(call) for call in message.get("tool_calls") or []]
        content, reasoning = split_reasoning(message)
        usage = _read_usage(answer.get("usage") or {})
    except (LookupError, TypeError, AttributeError, ValueError) as failure:
        raise ChatError("the answer has no usable choice", "bad_response", retryable=True) from failure
    finish_reason = str(choice.get("finish_reason") or "stop")
    _check_refusal(message, finish_reason)
    if content is None and not calls:
        content = _missing_text(finish_reason)
    return ChatReply(
        content if content is None else clean_text(content),
        calls,
        finish_reason,
        usage,
        model=_name(answer.get("model")),
        latency_ms=latency_ms,
        reasoning=clean_text(reasoning),
        fingerprint=_name(answer.get("system_fingerprint")),
    )


def clean_text(text: str) -> str:
    """The text with U+FFFD for half a surrogate pair: servers cut emojis in two, and nobody can store the halves."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def classify_status(status: int) -> tuple[ChatErrorKind, bool]:
    """The kind of error that an HTTP status means, and whether the same call may work later."""
    if status == 429:
        return "rate_limit", True
    if status >= 500 or status in {408, 409, 425}:
        return "server", True
    # Key, account, address or model name are wrong; anything else is about this very request.
    return ("configuration" if status < 400 or status in {401, 402, 403, 404, 405} else "refused"), False


def _refuse_error(answer: Any) -> None:
    """Raise the error that some gateways send with status 200."""
    error = answer.get("error") if isinstance(answer, Mapping) else None
    if not error or answer.get("choices"):
        return
    details = error if isinstance(error, Mapping) else {"message": error}
    text = f"the server answered with an error: {details.get('message') or details.get('code')}"
    code = details.get("code")
    kind, retryable = classify_status(code) if isinstance(code, int) else ("bad_response", True)
    raise ChatError(clean_text(text)[:LONGEST_MESSAGE], kind, retryable=retryable)


def _check_refusal(message: Mapping[str, Any], finish_reason: str) -> None:
    if message.get("refusal") or finish_reason == "content_filter":
        raise ChatError("the model refused to answer", "refused")


def _missing_text(finish_reason: str) -> str:
    """The text of a reply that has none: "" when its tokens ended before it began, as in a long line of thought."""
    if finish_reason == "length":
        return ""
    raise ChatError("the answer has neither text nor tool calls", "bad_response", retryable=True)


def _read_call(call: Mapping[str, Any]) -> ToolCall:
    function = call["function"]
    # Some servers send nothing for a function without arguments, and some the object itself.
    arguments = function.get("arguments") or "{}"
    text = arguments if isinstance(arguments, str) else json.dumps(arguments, ensure_ascii=False)
    return ToolCall(_name(call.get("id")), clean_text(str(function["name"])), clean_text(text))


def _name(value: Any) -> str:
    return clean_text(str(value)) if value else ""


def _read_usage(usage: Mapping[str, Any]) -> Usage:
    cached = (usage.get("prompt_tokens_details") or {}).get("cached_tokens")
    counts = usage.get("prompt_tokens"), usage.get("completion_tokens"), cached
    prompt, completion, read = (_count(number) for number in counts)
    # They are part of the prompt, whatever the server says.
    return Usage(prompt, completion, min(read, prompt))


def _count(number: Any) -> int:
    """A number of tokens; 0 for what is none, since a reply is not worth less for a wrong bill."""
    return int(number) if isinstance(number, int | float) and 0 <= number <= MOST_TOKENS else 0
