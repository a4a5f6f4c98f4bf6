"""The forms of the change sentences that the diagnoser writes and the editor reads back.

A developer may rewrite them: what keeps the form is carried out as it says, the rest becomes a rule in its own words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

DESCRIPTION = "描述"
STEPS = "步骤"
STATE = "回复要点"
CAUTION = "注意"
SCRIPT = "话术"

RULE_FORM = re.compile(r"^在\s*(\S+)\s*(?:的?末尾)?增加一条规则[：:]\s*(.+)$")
HOOK_FORM = re.compile(r"^新增钩子\s*(\S+?)[：:](.+)$")
SKILL_FORM = re.compile(r"^新增 reply 技能\s*(\S+?)，描述写[：:]\s*(.+)$")
AMEND_FORM = re.compile(r"^(\S+?/SKILL\.md)\s*的(描述|步骤|回复要点|注意|话术)补上[：:]\s*(.+)$")
PHRASE = re.compile(r"「([^」]+)」|“([^”]+)”|\"([^\"]+)\"")


@dataclass(frozen=True)
class Change:
    """One change sentence as read: `what` is rule, hook, skill or one of the sections of a skill."""

    what: str
    path: str
    text: str


def add_rule(path: str, rule: str) -> str:
    """A rule at the end of a prompt file."""
    return f"在 {path} 末尾增加一条规则：{rule}"


def forbid_by_hook(path: str, claims: Sequence[str]) -> str:
    """A hook that sends a reply with these words back."""
    return f"新增钩子 {path}：回复里出现" + "、".join(f"「{claim}」" for claim in claims) + "就打回重说。"


def new_skill(path: str, description: str) -> str:
    """A reply skill with its description."""
    return f"新增 reply 技能 {path}，描述写：{description}"


def amend_skill(path: str, section: str, text: str) -> str:
    """A line more in a section of a skill; of a new one too."""
    return f"{path} 的{section}补上：{text}"


def read_change(sentence: str, rules_path: str) -> Change:
    """Read a sentence back; free words become a rule."""
    text = sentence.strip()
    for what, form in (("rule", RULE_FORM), ("hook", HOOK_FORM), ("skill", SKILL_FORM)):
        match = form.match(text)
        if match:
            return Change(what, match.group(1), match.group(2).strip())
    match = AMEND_FORM.match(text)
    if match:
        return Change(match.group(2), match.group(1), match.group(3).strip())
    return Change("rule", rules_path, text)


def quoted(text: str) -> list[str]:
    """The quoted phrases of a text."""
    return ["".join(groups) for groups in PHRASE.findall(text)]
