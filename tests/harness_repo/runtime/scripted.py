"""A chat model that answers from a list, and keeps what it was sent."""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from harness_repo.runtime.chat import ChatError, ChatReply, ChatRequest, ToolCall, Usage


@dataclass
class ScriptedModel:
    answers: list[ChatReply | ChatError | float]
    requests: list[ChatRequest] = field(default_factory=list)

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.requests.append(request)
        answer = self.answers.pop(0)
        if isinstance(answer, ChatError):
            raise answer
        if isinstance(answer, float):
            await asyncio.sleep(answer)
            raise AssertionError("nobody waited this long")
        return answer


def say(text: str | None) -> ChatReply:
    return ChatReply(text, usage=Usage(10, 5, 2), model="scripted-1", latency_ms=100)


def call(*calls: tuple[str, object]) -> ChatReply:
    made = [
        ToolCall(f"c{number}", name, arguments if isinstance(arguments, str) else json.dumps(arguments))
        for number, (name, arguments) in enumerate(calls, 1)
    ]
    return ChatReply(None, made, "tool_calls", Usage(10, 5, 2), "scripted-1", 100)


def load(*names: str) -> ChatReply:
    return call(*[("load_skill", {"name": name}) for name in names])


def tool_contents(messages: Sequence[dict[str, object]]) -> list[object]:
    return [message["content"] for message in messages if message["role"] == "tool"]
