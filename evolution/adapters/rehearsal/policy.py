"""The rehearsal policy: load the closest skill, call the tools that it names, compose the reply."""

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from evolution.adapters.rehearsal.arguments import tool_calls_for
from evolution.adapters.rehearsal.compose import Answer, compose_reply
from evolution.adapters.rehearsal.reading import LOAD_SKILL, Situation, SkillLine, read_situation
from evolution.adapters.rehearsal.rules import Attention
from evolution.adapters.rehearsal.skill_text import tools_named
from evolution.adapters.rehearsal.text import Index
from harness_repo.runtime.chat import ChatRequest, ToolCall

WORD_BREAK = re.compile(r"[-_]")

# Below this likeness no skill is close, and the most general one is taken.
CLOSE = 0.6
# More danmaku than this in one request are not kept apart.
MAX_DANMAKU = 4


@dataclass(frozen=True)
class Turn:
    """What a role answers: text, or tool calls."""

    content: str | None
    calls: tuple[ToolCall, ...] = ()


def answer_as_policy(request: ChatRequest) -> Turn:
    """One turn of the policy."""
    situation = read_situation(request.messages, request.tools)
    attention = Attention.of(situation)
    danmaku = situation.danmaku[:MAX_DANMAKU] if attention.answers_each() else situation.danmaku[:1]
    answers = [Answer(text, choose_skills(text, situation)) for text in danmaku]
    wanted = _skills_to_load(answers, situation) or _tools_to_call(answers, situation)
    if wanted:
        return Turn(None, _numbered(wanted, request.messages))
    return Turn(compose_reply(answers, situation, attention))


def choose_skills(danmaku: str, situation: Situation) -> list[str]:
    """The closest skill, and the closest reply skill with it when that one is a strategy."""
    best = _closest(danmaku, situation.skills)
    if best is None:
        general = general_skill(situation.skills)
        return [general.name] if general else []
    if best.kind == "reply":
        return [best.name]
    replies = [skill for skill in situation.skills if skill.kind == "reply"]
    reply = _closest(danmaku, replies) or general_skill(replies)
    return [best.name, *([reply.name] if reply else [])]


def _closest(danmaku: str, skills: Sequence[SkillLine]) -> SkillLine | None:
    index = Index.of(f"{WORD_BREAK.sub(' ', skill.name)} {skill.description}" for skill in skills)
    scores = index.scores(danmaku)
    best = max(range(len(skills)), key=lambda i: (scores[i], -i), default=None)
    return skills[best] if best is not None and scores[best] >= CLOSE else None


def general_skill(skills: Sequence[SkillLine]) -> SkillLine | None:
    """The reply skill that calls itself general, else the first."""
    replies = [skill for skill in skills if skill.kind == "reply"] or list(skills)
    general = [
        skill for skill in replies if "通用" in skill.description or "general" in skill.description.lower()
    ]
    return next(iter([*general, *replies]), None)


def _skills_to_load(answers: Sequence[Answer], situation: Situation) -> list[tuple[str, dict[str, Any]]]:
    if LOAD_SKILL not in situation.tools:
        return []
    names = dict.fromkeys(name for answer in answers for name in answer.skills)
    return [(LOAD_SKILL, {"name": name}) for name in names if name not in situation.bodies]


def _tools_to_call(answers: Sequence[Answer], situation: Situation) -> list[tuple[str, dict[str, Any]]]:
    done = [(result.name, result.arguments) for result in situation.results]
    wanted: list[tuple[str, dict[str, Any]]] = []
    for answer in answers:
        for name in answer.skills:
            for tool in tools_named(situation.bodies.get(name, ""), situation.tools, answer.danmaku):
                calls = tool_calls_for(situation.tools[tool], answer.danmaku, situation)
                wanted += [(tool, arguments) for arguments in calls]
    unique = [call for i, call in enumerate(wanted) if call not in wanted[:i]]
    return [call for call in unique if call not in done and call[0] != LOAD_SKILL]


def _numbered(
    wanted: Sequence[tuple[str, dict[str, Any]]], messages: Sequence[dict[str, Any]]
) -> tuple[ToolCall, ...]:
    made = sum(len(message.get("tool_calls") or []) for message in messages)
    return tuple(
        ToolCall(f"call_{made + i}", name, json.dumps(arguments, ensure_ascii=False))
        for i, (name, arguments) in enumerate(wanted, start=1)
    )
