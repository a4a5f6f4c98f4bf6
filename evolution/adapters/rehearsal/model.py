"""The rehearsal model behind the ChatModel protocol: role by model name, tokens and latency by a simple estimate."""

import hashlib
import json
import time
from collections.abc import Callable
from functools import cached_property
from pathlib import Path
from typing import Any

from evolution.adapters.rehearsal.diagnoser import answer_as_diagnoser
from evolution.adapters.rehearsal.editor import answer_as_editor
from evolution.adapters.rehearsal.judge import answer_as_judge
from evolution.adapters.rehearsal.policy import Turn, answer_as_policy
from evolution.adapters.rehearsal.text import HAN
from evolution.adapters.rehearsal.user import answer_as_user
from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest, Usage

ROLES: dict[str, Callable[[ChatRequest], Turn]] = {
    "rehearsal-policy": answer_as_policy,
    "rehearsal-judge": answer_as_judge,
    "rehearsal-diagnoser": answer_as_diagnoser,
    "rehearsal-editor": answer_as_editor,
    "rehearsal-user": answer_as_user,
}

# Beside their answers people see how long the whole took.
_WAITED_FOR = ("rehearsal-diagnoser", "rehearsal-editor")

# Estimates of a small hosted model: 0.6 tokens per Chinese character, 4 other characters per token,
# 180 ms to the first token plus 5,000 prompt tokens/s, then 140 tokens/s.
TOKENS_PER_HAN = 0.6
CHARACTERS_PER_TOKEN = 4
FIRST_TOKEN_MS = 180.0
PROMPT_TOKENS_PER_MS = 5.0
COMPLETION_TOKENS_PER_MS = 0.14


class RehearsalModel:
    """A deterministic ChatModel: the same request always brings the same reply and usage.

    The latency of what evaluations measure is an estimate, the same each time; people wait for the others.
    """

    @cached_property
    def identity(self) -> str:
        """Which program this is: another release of it may answer the same request otherwise."""
        sources = sorted(Path(__file__).parent.glob("*.py"))
        return hashlib.sha256(b"\0".join(source.read_bytes() for source in sources)).hexdigest()[:16]

    async def complete(self, request: ChatRequest) -> ChatReply:
        """Answer in the role that the model's name says; ChatError (configuration) for any other name."""
        role = ROLES.get(request.model)
        if role is None:
            known = ", ".join(ROLES)
            raise ChatError(f"no rehearsal role {request.model!r}; there is {known}", "configuration")
        began = time.perf_counter()
        turn = role(request)
        took = (time.perf_counter() - began) * 1000
        usage = Usage(_prompt_tokens(request), count_tokens(_said(turn)))
        return ChatReply(
            content=turn.content,
            tool_calls=list(turn.calls),
            finish_reason="tool_calls" if turn.calls else "stop",
            usage=usage,
            model=request.model,
            latency_ms=round(took, 1) if request.model in _WAITED_FOR else simulated_latency(usage),
        )


def count_tokens(text: str) -> int:
    """Estimated tokens of a text."""
    han = sum(len(run) for run in HAN.findall(text))
    return round(han * TOKENS_PER_HAN + (len(text) - han) / CHARACTERS_PER_TOKEN)


def simulated_latency(usage: Usage) -> float:
    """Milliseconds that a small hosted model would take; nothing sleeps."""
    reading = usage.prompt_tokens / PROMPT_TOKENS_PER_MS
    return round(FIRST_TOKEN_MS + reading + usage.completion_tokens / COMPLETION_TOKENS_PER_MS, 1)


def _prompt_tokens(request: ChatRequest) -> int:
    sent: list[Any] = [*request.messages, *request.tools]
    return count_tokens(json.dumps(sent, ensure_ascii=False))


def _said(turn: Turn) -> str:
    return (turn.content or "") + "".join(call.name + call.arguments for call in turn.calls)
