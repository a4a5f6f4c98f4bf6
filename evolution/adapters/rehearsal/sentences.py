"""The forms of the change sentences that the diagnoser writes and the editor reads back, in Chinese or English.

A developer may rewrite them: what keeps the form is carried out as it says, the rest becomes a rule in its own words.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from evolution.adapters.rehearsal.wording import listed

DESCRIPTION = "description"
STEPS = "steps"
STATE = "state"
CAUTION = "caution"
SCRIPT = "script"

# section -> its heading in a skill, in Chinese and in English
HEADINGS = {
    DESCRIPTION: ("描述", "description"),
    STEPS: ("步骤", "Steps"),
    STATE: ("回复要点", "What to state"),
    CAUTION: ("注意", "Cautions"),
    SCRIPT: ("话术", "Scripts"),
}
SECTIONS = {heading.lower(): section for section, pair in HEADINGS.items() for heading in pair}

_RULE = re.compile(
    r"^(?:在\s*(?P<zh>\S+)\s*(?:的?末尾)?增加一条规则[：:]|Add a rule at the end of (?P<en>\S+?):)\s*(?P<text>.+)$"
)
_HOOK = re.compile(r"^(?:新增钩子\s*(?P<zh>\S+?)[：:]|Add the hook (?P<en>\S+?):)(?P<text>.+)$")
_SKILL = re.compile(
    r"^(?:新增 reply 技能\s*(?P<zh>\S+?)，描述写[：:]"
    r"|Add the reply skill (?P<en>\S+?) with the description:)\s*(?P<text>.+)$"
)
_AMEND_ZH = re.compile(
    r"^(?P<path>\S+?/SKILL\.md)\s*的(?P<section>描述|步骤|回复要点|注意|话术)补上[：:]\s*(?P<text>.+)$"
)
_AMEND_EN = re.compile(
    r"^Add to the (?P<section>description|steps|what to state|cautions|scripts) of (?P<path>\S+?/SKILL\.md):"
    r"\s*(?P<text>.+)$",
    re.IGNORECASE,
)
_PHRASE = re.compile(r"「([^」]+)」|“([^”]+)”|\"([^\"]+)\"")


@dataclass(frozen=True)
class Change:
    """One change sentence as read: `what` is rule, hook, skill or one of the sections of a skill."""

    what: str
    path: str
    text: str


def heading(section: str, *, chinese: bool) -> str:
    """The heading of a section of a skill."""
    return HEADINGS[section][0 if chinese else 1]


def add_rule(path: str, rule: str, *, chinese: bool) -> str:
    """A rule at the end of a prompt file."""
    return f"在 {path} 末尾增加一条规则：{rule}" if chinese else f"Add a rule at the end of {path}: {rule}"


def forbid_by_hook(path: str, claims: Sequence[str], *, chinese: bool) -> str:
    """A hook that sends a reply with these words back."""
    said = listed(claims, chinese=chinese)
    if chinese:
        return f"新增钩子 {path}：回复里出现{said}就打回重说。"
    return f"Add the hook {path}: a reply that says {said} is sent back."


def new_skill(path: str, description: str, *, chinese: bool) -> str:
    """A reply skill with its description."""
    if chinese:
        return f"新增 reply 技能 {path}，描述写：{description}"
    return f"Add the reply skill {path} with the description: {description}"


def amend_skill(path: str, section: str, text: str, *, chinese: bool) -> str:
    """A line more in a section of a skill; of a new one too."""
    name = heading(section, chinese=chinese)
    return f"{path} 的{name}补上：{text}" if chinese else f"Add to the {name.lower()} of {path}: {text}"


def read_change(sentence: str, rules_path: str) -> Change:
    """Read a sentence back; free words become a rule."""
    text = sentence.strip()
    for what, form in (("rule", _RULE), ("hook", _HOOK), ("skill", _SKILL)):
        match = form.match(text)
        if match:
            return Change(what, match["zh"] or match["en"], match["text"].strip())
    match = _AMEND_ZH.match(text) or _AMEND_EN.match(text)
    if match:
        return Change(SECTIONS[match["section"].lower()], match["path"], match["text"].strip())
    return Change("rule", rules_path, text)


def quoted(text: str) -> list[str]:
    """The quoted phrases of a text."""
    return ["".join(groups) for groups in _PHRASE.findall(text)]
