"""What a skill's body tells the model to do: tools to call, fields to state, scripts to say."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from evolution.adapters.rehearsal.reading import ITEM
from evolution.adapters.rehearsal.text import is_about, overlaps, shared

CONDITION = re.compile(
    r"(?:如果|若|要是|当)(?:观众)?(.+?)(?:时|的话)?[，,]|\b(?:if|when) (.+?),", re.IGNORECASE
)
STATE = re.compile(
    r"说明|告诉|报出|说出|回答|给出|讲清|补充|提到|\b(?:state|tell|mention|give|say|include)\b", re.IGNORECASE
)
IDENTIFIER = re.compile(r"(?<![A-Za-z0-9_{])([a-z][a-z0-9]*(?:_[a-z0-9]+)*)(?![A-Za-z0-9_}])")
SCRIPT = re.compile(
    r"(?:话术|例如|例|script)\s*(?:[（(]([^）)]*)[）)])?\s*[:：]\s*[「“\"](.+)[」”\"]", re.IGNORECASE
)


@dataclass(frozen=True)
class Script:
    """A line to say; `condition` is what the danmaku is about, "" for any."""

    condition: str
    text: str


def tools_named(body: str, known: Collection[str], danmaku: str) -> list[str]:
    """The tools that the body's lines name, in order, conditional lines only if the danmaku meets the condition."""
    found = [
        name
        for line in body.splitlines()
        if _applies(line, danmaku)
        for name in IDENTIFIER.findall(line)
        if name in known
    ]
    return list(dict.fromkeys(found))


def fields_named(body: str, known: Collection[str], danmaku: str) -> list[str]:
    """The result fields that the body tells to state, in order."""
    found = [
        name
        for line in body.splitlines()
        if STATE.search(line) and not SCRIPT.search(line) and _applies(line, danmaku)
        for name in IDENTIFIER.findall(line)
        if name in known
    ]
    return list(dict.fromkeys(found))


def script_for(body: str, danmaku: str) -> str | None:
    """The script to say: the one whose condition fits the danmaku best, else one without condition, else the first."""
    scripts = [
        Script(match.group(1) or "", match.group(2))
        for match in map(SCRIPT.search, body.splitlines())
        if match
    ]
    fitting = [script for script in scripts if script.condition and overlaps(script.condition, danmaku)]
    fitting.sort(key=lambda script: -len(shared(script.condition, danmaku)))
    general = [script for script in scripts if not script.condition]
    return next((script.text for script in [*fitting, *general, *scripts]), None)


def _applies(line: str, danmaku: str) -> bool:
    item = ITEM.match(line)
    match = CONDITION.search(item.group(1) if item else line)
    return match is None or is_about(match.group(1) or match.group(2) or "", danmaku)
