"""Reads what a policy is sent: sections of the prompt, loaded skills, tool results, hook messages. Nothing else."""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

HEADING = re.compile(r"^#{1,6}\s+(.*)$")
ITEM = re.compile(r"^\s*(?:[-*]|\d+[.、)])\s+(.*)$")
RULES = re.compile(
    r"约束|规则|要求|注意|禁止|规范|rules?\b|constraints?\b|requirements?\b|cautions?\b", re.IGNORECASE
)
SKILLS = re.compile(r"技能|skills?\b", re.IGNORECASE)
ROOM = re.compile(r"直播间状态|房间|room", re.IGNORECASE)
SHELF = re.compile(r"商品|宝贝|products?\b|shelf", re.IGNORECASE)
FAQ = re.compile(r"问答|faq|questions?\b", re.IGNORECASE)
DANMAKU = re.compile(r"弹幕|danmaku|comments?\b|viewers?\b", re.IGNORECASE)
HISTORY = re.compile(r"历史|之前|history|earlier", re.IGNORECASE)

SKILL_LINE = re.compile(r"^([A-Za-z0-9_-]+)\s*(?:[(（](\w+)[)）])?\s*[:：]\s*(.+)$")
SHELF_LINE = re.compile(r"^(?:link\s*)?#?(\d+)\s*(?:号链接|号|\.)?\s*[:：]?\s*(.+)$", re.IGNORECASE)
CURRENT = re.compile(r"(?:当前|正在|current)[^\d\n]*(\d+)", re.IGNORECASE)
FAQ_LINE = re.compile(r"(?:问|Q)[:：]\s*(.+?)\s*(?:答|A)[:：]\s*(.+)$")
SPEAKER = re.compile(r"^[^：:]{0,40}[：:]\s*(.*)$")
RETURNS = re.compile(r"([a-z][a-z0-9_]*)（([^（）]*)）")

LOAD_SKILL = "load_skill"


@dataclass(frozen=True)
class SkillLine:
    """A line of the skill index."""

    name: str
    kind: str
    description: str


@dataclass(frozen=True)
class Label:
    """How a result field is called aloud; `unit` follows the value."""

    zh: str
    en: str
    zh_unit: str = ""
    en_unit: str = ""


@dataclass(frozen=True)
class ToolDoc:
    """A tool as the request documents it."""

    name: str
    description: str
    parameters: dict[str, Any]
    labels: dict[str, Label]


@dataclass(frozen=True)
class ToolResult:
    """What a tool answered: `result` is None when it failed."""

    name: str
    arguments: dict[str, Any]
    result: dict[str, Any] | None


@dataclass(frozen=True)
class Situation:
    """Everything that the policy knows of a request."""

    danmaku: list[str]
    skills: list[SkillLine]
    link: int | None
    # link_id -> product name, in the order shown
    shelf: dict[int, str]
    faq: list[tuple[str, str]]
    # list items of the system prompt under a heading of rules, in the order shown
    rules: list[str]
    tools: dict[str, ToolDoc]
    # name -> body, in the order of loading
    bodies: dict[str, str] = field(default_factory=dict)
    results: list[ToolResult] = field(default_factory=list)
    # rules that came as later user messages, oldest first
    retries: list[str] = field(default_factory=list)


def read_situation(messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]]) -> Situation:
    """Read a chat request; what cannot be recognised is simply not known."""
    system = [section for text in _texts(messages, "system") for section in sections(text)]
    users = _texts(messages, "user")
    docs = {doc.name: doc for doc in map(_tool_doc, tools)}
    bodies, results = _tool_messages(messages)
    return Situation(
        danmaku=_danmaku(users[0] if users else ""),
        skills=_skill_lines(system),
        link=_current_link(system),
        shelf=_shelf(system),
        faq=_faq(system),
        rules=rule_items(system),
        tools=docs,
        bodies=bodies,
        results=results,
        retries=[rule for text in users[1:] for rule in _retry_rules(text)],
    )


def sections(text: str) -> list[tuple[str, list[str]]]:
    """Split Markdown at its headings: (heading, lines below it), the text before the first under ""."""
    found: list[tuple[str, list[str]]] = [("", [])]
    for line in text.splitlines():
        heading = HEADING.match(line)
        if heading:
            found.append((heading.group(1).strip(), []))
        else:
            found[-1][1].append(line)
    return found


def items(lines: Sequence[str]) -> list[str]:
    """The list items among the lines, without their marks."""
    return [match.group(1).strip() for match in map(ITEM.match, lines) if match]


def rule_items(parts: Sequence[tuple[str, list[str]]]) -> list[str]:
    """List items below headings of rules, in order."""
    return [item for heading, lines in parts if RULES.search(heading) for item in items(lines)]


def _texts(messages: Sequence[dict[str, Any]], role: str) -> list[str]:
    return [str(message.get("content") or "") for message in messages if message.get("role") == role]


def _danmaku(text: str) -> list[str]:
    parts = [part for part in sections(text) if DANMAKU.search(part[0]) and not HISTORY.search(part[0])]
    lines = items(parts[-1][1]) if parts else []
    if not lines:
        return [line for line in [text.strip()] if line]
    spoken = [SPEAKER.match(line) for line in lines]
    return [match.group(1) if match else line for match, line in zip(spoken, lines, strict=True)]


def _skill_lines(parts: Sequence[tuple[str, list[str]]]) -> list[SkillLine]:
    lines = [item for heading, body in parts if SKILLS.search(heading) for item in items(body)]
    return [
        SkillLine(match.group(1), match.group(2) or "reply", match.group(3))
        for match in map(SKILL_LINE.match, lines)
        if match
    ]


def _current_link(parts: Sequence[tuple[str, list[str]]]) -> int | None:
    text = "\n".join("\n".join(lines) for heading, lines in parts if ROOM.search(heading))
    match = CURRENT.search(text)
    return int(match.group(1)) if match else None


def _shelf(parts: Sequence[tuple[str, list[str]]]) -> dict[int, str]:
    lines = [item for heading, body in parts if _is_shelf(heading) for item in items(body)]
    return {int(match.group(1)): match.group(2) for match in map(SHELF_LINE.match, lines) if match}


def _is_shelf(heading: str) -> bool:
    return bool(SHELF.search(heading)) and not FAQ.search(heading)


def _faq(parts: Sequence[tuple[str, list[str]]]) -> list[tuple[str, str]]:
    lines = [item for heading, body in parts if FAQ.search(heading) for item in items(body)]
    return [(match.group(1), match.group(2)) for match in map(FAQ_LINE.search, lines) if match]


def _retry_rules(text: str) -> list[str]:
    return items(text.splitlines()) or [text.strip()]


def _tool_doc(tool: dict[str, Any]) -> ToolDoc:
    function = tool.get("function", {})
    description = str(function.get("description") or "")
    labels = {name: _label(text) for name, text in RETURNS.findall(description)}
    return ToolDoc(str(function.get("name")), description, dict(function.get("parameters") or {}), labels)


def _label(text: str) -> Label:
    zh, _, en = text.partition(" / ")
    zh, _, zh_unit = zh.partition("，单位")
    en, _, en_unit = (en or zh).partition(", in ")
    return Label(zh.strip(), en.strip(), zh_unit.strip(), en_unit.strip())


def _tool_messages(messages: Sequence[dict[str, Any]]) -> tuple[dict[str, str], list[ToolResult]]:
    bodies: dict[str, str] = {}
    results: list[ToolResult] = []
    calls = dict(_calls(messages))
    for message in messages:
        if message.get("role") != "tool":
            continue
        name, arguments = calls.get(str(message.get("tool_call_id")), ("", {}))
        content = str(message.get("content") or "")
        if name == LOAD_SKILL:
            bodies[str(arguments.get("name"))] = _body(content)
        elif name:
            results.append(ToolResult(name, arguments, _result(content)))
    return bodies, results


def _calls(messages: Sequence[dict[str, Any]]) -> Iterator[tuple[str, tuple[str, dict[str, Any]]]]:
    for message in messages:
        for call in message.get("tool_calls") or []:
            function = call.get("function", {})
            arguments = _json(str(function.get("arguments") or "{}"))
            yield (
                str(call.get("id")),
                (str(function.get("name")), arguments if isinstance(arguments, dict) else {}),
            )


def _body(content: str) -> str:
    value = _json(content)
    if isinstance(value, dict):
        return next(
            (str(value[key]) for key in ("body", "content", "instructions", "result") if value.get(key)), ""
        )
    return content if value is None else str(value)


def _result(content: str) -> dict[str, Any] | None:
    value = _json(content)
    if not isinstance(value, dict) or value.get("error"):
        return None
    inner = value.get("result")
    return inner if isinstance(inner, dict) and len(value) <= 2 else value


def _json(text: str) -> object:
    try:
        value: object = json.loads(text)
    except ValueError:
        return None
    return value
