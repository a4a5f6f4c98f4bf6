"""The rehearsal user: plays the user of a conversation, from the goal and stop rule that its prompt shows.

1. The goal's parts are its sentences and what semicolons divide, divided again where a further task begins: at 再问,
   然后, 接着 or 最后 after a comma, and at "and then", "and also", or "then" after a comma or before a verb. They are
   brought up one after the other, in order. A first line that the case gives the user counts as the first part.
2. A part that tells what to do (learn, ask whether, 问清, 问一下, 想知道) is said as a question without those words,
   any other one as it stands.
3. It leaves once the agent has replied to the last part; sooner when a reply refuses, puts it off (核实, 稍后), or
   says a phrase that the stop rule quotes.
4. It thanks for an answer, and is curt otherwise; in the language of the goal.
"""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evolution.adapters.rehearsal.policy import Turn
from evolution.adapters.rehearsal.rules import QUOTED
from evolution.adapters.rehearsal.text import is_chinese
from harness_repo.runtime.chat import ChatRequest

_ASK_EN = r"(?:learn|find out|ask(?: about| for)?|get to know|know)\s+"
_PART_END = re.compile(
    r"[;；。！!？?\n]+|\.(?=\s|$)"
    # A further task; the words that begin it stay with the part, and are no part of what is said.
    r"|[，,、]\s*(?=再(?:问|打听|了解|确认)|(?:然后|接着|最后)(?!呢))|(?=(?:然后|接着)再?问)"
    rf"|,\s+(?=then\s)|,?\s+(?=and (?:then|also)\s)|(?<!and)\s+(?=then {_ASK_EN})",
    re.IGNORECASE,
)
_LEAD_ZH = re.compile(r"^(?:首先|然后|接着|最后)(?!呢)[，,]?")
_LEAD_EN = re.compile(r"^(?:first|(?:and )?then|and also|finally|also)\s+", re.IGNORECASE)
_TASK_ZH = re.compile(
    r"^先?(?:再|还)?(?:想要?|要)?(?:问清楚?|弄清楚?|搞清楚?|打听|了解|知道|确认|问问|问一?下|问)(?:一下)?"
)
_TASK_EN = re.compile(rf"^(?:wants? )?(?:to )?{_ASK_EN}", re.IGNORECASE)
# What is asked, where a further part does not repeat the verb: "then whether it is in stock".
_ASKED_EN = re.compile(r"^(?=(?:whether|if|how|what|when|where|which|who|why|the)\b)", re.IGNORECASE)
_REFUSED = re.compile(
    r"核实|稍后|不能透露|无法|没法|不清楚|不支持"
    r"|\b(?:can't|cannot|can not|unable to|not able to|let me check|will check|don't know|do not know)\b",
    re.IGNORECASE,
)
# Chinese, then English: thanks, and the curt one.
_THANKS = {True: "好的，谢谢！", False: "Thanks!"}
_CURT = {True: "好吧。", False: "Never mind."}


@dataclass(frozen=True)
class _Role:
    """What the prompt says of the user."""

    parts: tuple[str, ...]
    # phrases that end the conversation when the agent says one
    stops: tuple[str, ...]
    chinese: bool


def answer_as_user(request: ChatRequest) -> Turn:
    """The user's next line as JSON, {"say", "done"}."""
    role = _read_role(request.messages)
    said = [message for message in request.messages if message["role"] == "assistant"]
    reply = str(request.messages[-1].get("content") or "") if said else ""
    if said and (_REFUSED.search(reply) or any(phrase in reply for phrase in role.stops)):
        return _line(_CURT[role.chinese], done=True)
    if len(said) >= len(role.parts):
        return _line(_THANKS[role.chinese], done=True)
    return _line(_as_question(role.parts[len(said)], chinese=role.chinese), done=False)


def _read_role(messages: Sequence[dict[str, Any]]) -> _Role:
    text = "\n".join(str(message.get("content") or "") for message in messages if message["role"] == "system")
    goal, stop = _element(text, "goal"), _element(text, "stop")
    parts = tuple(part.strip() for part in _PART_END.split(goal) if part.strip())
    stops = tuple("".join(groups) for groups in QUOTED.findall(stop))
    return _Role(parts or (goal,), stops, is_chinese(goal))


def _element(text: str, name: str) -> str:
    found = re.search(rf"^<{name}>\n(.*?)\n</{name}>$", text, re.DOTALL | re.MULTILINE)
    return found.group(1) if found else ""


def _as_question(part: str, *, chinese: bool) -> str:
    plain = (_LEAD_ZH if chinese else _LEAD_EN).sub("", part).strip()
    task = _TASK_ZH.match(plain) if chinese else _TASK_EN.match(plain) or _ASKED_EN.match(plain)
    rest = plain[task.end() :].strip(" ，,：:") if task else ""
    if not rest:
        return plain or part
    return f"请问{rest}？" if chinese else f"Could you tell me {rest}?"


def _line(say: str, *, done: bool) -> Turn:
    return Turn(json.dumps({"say": say, "done": done}, ensure_ascii=False))
