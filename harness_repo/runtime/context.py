"""Normalises what comes in with a request: several danmaku, earlier turns, and the live room around them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Danmaku:
    """One viewer's comment on the live screen."""

    user: str
    text: str


@dataclass(frozen=True)
class AgentRequest:
    """What the agent is to answer, in one reply."""

    danmaku: tuple[Danmaku, ...]
    # Earlier turns, oldest first, as {"role", "content"} or as the source had them.
    history: tuple[dict[str, Any], ...] = ()


def normalise_request(request: Mapping[str, Any]) -> AgentRequest:
    """Read a case's request; texts are stripped, empty and repeated danmaku dropped. Raises ValueError."""
    entries = request.get("danmaku", [])
    history = request.get("history") or []
    if not isinstance(entries, list) or not isinstance(history, list):
        raise ValueError("danmaku and history must be lists")
    if not all(isinstance(turn, Mapping) for turn in history):
        raise ValueError("a turn of the history must be an object")
    read = [_danmaku(entry) for entry in entries]
    unique = dict.fromkeys(item for item in read if item.text)
    return AgentRequest(tuple(unique), tuple(dict(turn) for turn in history))


def build_variables(request: Mapping[str, Any], context: Mapping[str, Any]) -> dict[str, Any]:
    """What an agent's prompt sections see: request, danmaku, history, room, products, faq, ..."""
    normal = normalise_request(request)
    danmaku = [{"user": item.user, "text": item.text} for item in normal.danmaku]
    history = list(normal.history)
    return {
        "room": {},
        "products": [],
        "faq": [],
        **context,
        "request": {"danmaku": danmaku, "history": history},
        "danmaku": danmaku,
        "history": history,
    }


def _danmaku(entry: object) -> Danmaku:
    if isinstance(entry, str):
        return Danmaku("", entry.strip())
    if not isinstance(entry, Mapping):
        raise ValueError("a danmaku must be a text or an object")
    return Danmaku(str(entry.get("user") or ""), str(entry.get("text") or "").strip())
