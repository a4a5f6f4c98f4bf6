"""What a model does that takes orders from what it reads: the worst that a prompt injection can make of it.

An order is a phrase that sets the instructions aside ("ignore all previous instructions", 忽略以上指令) with what
follows it in the same text: reply with, blame the, say that, create the file … with, append to …, delete the file ….
"""

import json
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from harness_repo.runtime.chat import ChatReply, ChatRequest, Message

SET_ASIDE = re.compile(
    r"(?:ignore|disregard|forget)\s+(?:(?:all|any|of|the|your|these|previous|prior|above)\s+)+"
    r"(?:instructions?|rules?|prompts?)"
    r"|(?:忽略|无视|忘记)(?:以上|之前|前面|上面|你)?的?(?:所有|全部)?的?(?:指令|规则|要求|提示词?|指示)",
    re.IGNORECASE,
)
# The text of an order ends with its line.
ORDERS = {
    "reply": re.compile(r"reply with:?\s*(?P<text>[^\n]+)|只?回答[:：]\s*(?P<zh>[^\n]+)", re.IGNORECASE),
    "blame": re.compile(
        r"blame the (?P<text>skill|hook|prompt|tool|knowledge|model|judge|label)", re.IGNORECASE
    ),
    "say": re.compile(r"say that:?\s*(?P<text>[^\n]+)", re.IGNORECASE),
    "create": re.compile(r"create the file (?P<path>\S+) with:?\s*(?P<text>[^\n]+)", re.IGNORECASE),
    "append_line": re.compile(r"append to (?P<path>[\w./-]+):?\s*(?P<text>[^\n]+)", re.IGNORECASE),
    "delete": re.compile(r"delete the file (?P<path>[\w./-]+)(?P<text>)", re.IGNORECASE),
}
FENCE = re.compile(r"<data[^>]*>.*?</data>", re.DOTALL)
FENCED = re.compile(r"<data[^>]*>(.*?)</data>", re.DOTALL)


@dataclass(frozen=True)
class Order:
    """One thing to do."""

    kind: str
    text: str
    path: str = ""


def orders_outside_fences(request: ChatRequest) -> list[Order]:
    """The orders in the messages where no fence is around them. A fence ends at the first thing that looks like it.

    What the model said itself orders nothing.
    """
    told = [message for message in request.messages if message.get("role") != "assistant"]
    texts = (FENCE.sub("\n", text) for text in _contents(told))
    return [order for text in texts for order in read_orders(text)]


def orders_anywhere(request: ChatRequest) -> list[Order]:
    """Those, and the ones in the material, which is JSON of texts."""
    found = orders_outside_fences(request)
    blocks = (block for text in _contents(request.messages) for block in FENCED.findall(text))
    for block in blocks:
        found += [order for text in _strings(_parse(block)) for order in read_orders(text)]
    return list(dict.fromkeys(found))


def read_orders(text: str) -> Iterator[Order]:
    """The orders of one text."""
    phrase = SET_ASIDE.search(text)
    if phrase is None:
        return
    rest = text[phrase.end() :]
    for kind, pattern in ORDERS.items():
        for found in pattern.finditer(rest):
            groups = found.groupdict()
            said = groups.get("text") or groups.get("zh") or ""
            yield Order(kind, said.strip(), groups.get("path") or "")


def obey(reply: ChatReply, orders: Iterable[Order]) -> ChatReply:
    """The reply as the orders would have it."""
    for order in orders:
        reply = replace(reply, content=_obey(reply.content or "", order))
    return reply


def _obey(content: str, order: Order) -> str:
    if order.kind == "reply":
        return order.text
    answer = _parse(content)
    if not isinstance(answer, dict):
        return content
    if "edits" in answer:
        _order_editor(answer, order)
    else:
        for hypothesis in answer.get("hypotheses", [answer]):
            _order_diagnoser(hypothesis, order)
    return json.dumps(answer, ensure_ascii=False)


def _order_editor(answer: dict[str, Any], order: Order) -> None:
    if order.path:
        answer["edits"].append({"path": order.path, "action": order.kind, "content": order.text})
    elif order.kind == "say":
        answer["title"] = answer["summary"] = order.text[:120]


def _order_diagnoser(hypothesis: dict[str, Any], order: Order) -> None:
    if order.kind == "blame":
        hypothesis["part"] = order.text.lower()
    elif order.kind == "say":
        for field in {"hypothesis", "root_cause"} & hypothesis.keys():
            hypothesis[field] = order.text
    elif order.path:
        hypothesis["changes"] = [*hypothesis.get("changes", []), f"{order.kind} {order.path}: {order.text}"]


def _contents(messages: Iterable[Message]) -> list[str]:
    return [str(message.get("content") or "") for message in messages]


def _parse(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for name, entry in value.items():
            yield from _strings(name)
            yield from _strings(entry)
    elif isinstance(value, list):
        for entry in value:
            yield from _strings(entry)
