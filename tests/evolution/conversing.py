"""Conversation cases for tests, answered from the starter's live rooms."""

from dataclasses import replace
from typing import Any

from evolution.demonstration import CaseData, load_cases

ROOM = {case.key: case for case in load_cases()}


def make_conversation(key: str, like: str, goal: str, **user: Any) -> CaseData:
    """A case in which a user pursues `goal` in the room and with the fixtures of the case `like`."""
    known = ROOM[like]
    profile = {"persona": "第一次来直播间，说话干脆", "goal": goal, **user}
    return replace(known, key=key, request={"danmaku": [], "history": [], "user": profile})


def conversations() -> list[CaseData]:
    """Two in Chinese, one of which the user leaves early, and one in English."""
    keys = sorted(ROOM)
    stock = next(key for key in keys if key.startswith("stock") and ROOM[key].language == "zh")
    english = next(key for key in keys if key.startswith("stock") and ROOM[key].language == "en")
    return [
        make_conversation("talk-1", stock, "问清楚1号链接还有多少库存；知道1号链接多少钱"),
        make_conversation("talk-2", stock, "问1号链接还有库存吗；问有没有赠品", stop="主播说了「库存」就走"),
        make_conversation("talk-3", english, "learn how many of link 1 are left; learn its price", turns=1),
    ]
