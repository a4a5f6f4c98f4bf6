"""The user of a conversation case, played by a chat model that sees what a person would: itself and the replies.

It never sees tools, prompts, fixtures or what a right answer states.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from harness_repo.format.json_schema import find_violation, load_schema
from harness_repo.runtime import user_texts
from harness_repo.runtime.chat import ChatError, ChatModel, ChatReply, ChatRequest, Message
from harness_repo.runtime.reply import parse_json_reply, split_reasoning
from harness_repo.runtime.trajectory import CallRecord

DEFAULT_TURNS = 6
# Far more than a person writes at once; what a viewer could not send is not a line.
LONGEST_LINE = 2000

# What the model answers with; `say` may be empty only with `done`.
LINE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"say": {"type": "string", "maxLength": LONGEST_LINE}, "done": {"type": "boolean"}},
    "required": ["say", "done"],
    "additionalProperties": False,
}

_CHINESE = re.compile(r"[\u3400-\u9fff]")
# Endpoints take a seed of 31 bits.
_SEED_BITS = 0x7FFFFFFF


@dataclass(frozen=True)
class UserProfile:
    """Who the user is and what they want: request["user"] of a case (see schemas/case.schema.json)."""

    persona: str
    goal: str
    # When the user leaves, beside when the goal is reached.
    stop: str = ""
    # The most replies that the agent gives.
    turns: int = DEFAULT_TURNS
    # What the user writes in; "" stands for the language of the goal.
    language: str = ""

    @property
    def is_chinese(self) -> bool:
        """Whether the user is to write Chinese."""
        return self.language.startswith("zh") if self.language else bool(_CHINESE.search(self.goal))


@dataclass(frozen=True)
class Line:
    """What the user says next; with `done` it is a parting word, or nothing."""

    say: str
    done: bool


def is_conversation(request: Mapping[str, Any]) -> bool:
    """Whether a case's request has a simulated user."""
    return "user" in request


def read_profile(request: Mapping[str, Any]) -> UserProfile:
    """The simulated user of a case's request; ValueError with the path of what is wrong."""
    schema = load_schema("case")["$defs"]["user"]
    user = request.get("user")
    wrong = find_violation(schema, user)
    if wrong or not isinstance(user, dict):
        raise ValueError((wrong or "$: not an object").replace("$", "$.user", 1))
    # To JSON Schema 6.0 is an integer too.
    fields: dict[str, Any] = {**user, "turns": int(user.get("turns", DEFAULT_TURNS))}
    return UserProfile(**fields)


class SimulatedUser:
    """One user in one conversation; remembers what was said, and what its model calls took."""

    def __init__(
        self, profile: UserProfile, model: ChatModel, model_name: str, seed: int, repeat: int = 0
    ) -> None:
        self.profile = profile
        self.calls: list[CallRecord] = []
        self._model = model
        self._model_name = model_name
        self._seed = seed & _SEED_BITS
        self._repeat = repeat
        self._messages = user_texts.opening(profile.persona, profile.goal, profile.stop, profile.is_chinese)

    def note_line(self, text: str) -> None:
        """Take a line that the case gives the user to begin with."""
        self._add("assistant", _as_json(Line(text, False)))

    def note_reply(self, reply: str) -> None:
        """Take what the agent replied."""
        self._add("user", reply)

    async def speak(self) -> Line:
        """The user's next line; one that is no line is asked for once more. Raises ChatError."""
        reply = await self._ask(self._messages)
        try:
            line = _read_line(reply.content)
        except ValueError as failure:
            asked = user_texts.repair(reply.content or "", str(failure), self.profile.is_chinese)
            line = _read_repaired(await self._ask([*self._messages, *asked]))
        self._add("assistant", _as_json(line))
        return line

    async def _ask(self, messages: Sequence[Message]) -> ChatReply:
        request = ChatRequest(
            model=self._model_name,
            messages=list(messages),
            response_schema={"name": "user_line", "schema": LINE_SCHEMA},
            parameters={"seed": self._seed},
            repeat=self._repeat,
        )
        try:
            reply = await self._model.complete(request)
        except ChatError:
            raise
        # What a client raises besides is the user's failure too, and not the agent's.
        except Exception as failure:
            raise ChatError(f"{type(failure).__name__}: {failure}", "bad_response") from failure
        turn = 1 + sum(message["role"] == "assistant" for message in self._messages)
        self.calls.append(CallRecord.of(reply, turn, split_reasoning(reply)[0]))
        return reply

    def _add(self, role: str, content: str) -> None:
        self._messages.append({"role": role, "content": content})


def _read_line(content: str | None) -> Line:
    """The line that a model wrote, or ValueError."""
    value: Any = parse_json_reply(content)
    wrong = find_violation(LINE_SCHEMA, value)
    if wrong:
        raise ValueError(wrong)
    line = Line(value["say"].strip(), value["done"])
    if not line.say and not line.done:
        raise ValueError("$.say: empty, and done is false")
    return line


def _read_repaired(reply: ChatReply) -> Line:
    try:
        return _read_line(reply.content)
    except ValueError as failure:
        raise ChatError(f"the simulated user said nothing that fits: {failure}", "bad_response") from failure


def _as_json(line: Line) -> str:
    return json.dumps({"say": line.say, "done": line.done}, ensure_ascii=False)
