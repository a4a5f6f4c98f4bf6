"""Why a case fails: from the judge's findings to the part of the harness that let it happen."""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from evolution.adapters.rehearsal.briefs import Brief, HarnessView, tool_text
from evolution.adapters.rehearsal.lexicon import meanings
from evolution.adapters.rehearsal.rules import EACH, GAPS, LANGUAGE
from evolution.adapters.rehearsal.text import Index
from evolution.adapters.rehearsal.wording import say

# A tool fits a danmaku from this likeness on.
TOOL_FITS = 1.2

# Causes that one rule mends, whatever the cases are about; a pattern tells a rule of the harness that says so already.
RULES: dict[str, re.Pattern[str] | None] = {
    "unsupported_claim": None,
    "not_returned": GAPS,
    "wrong_language": LANGUAGE,
    "unanswered": EACH,
}
# What a fact about manners is recognised by, and what good manners then say.
MANNERS = {
    "歉": "不好意思给宝宝添麻烦了，您联系一下客服，主播这边也帮您反馈。",
    "数字人": "我是这个直播间的数字人主播，陪大家看商品。",
    "生日": "祝宝宝生日快乐，天天开心。",
    "关心": "宝宝辛苦了，早点休息，注意身体。",
    "谢": "谢谢宝宝的支持。",
    "道别": "好的宝宝，早点休息，拜拜，咱们下次见。",
    "打招呼": "欢迎宝宝来到直播间。",
    "医": "身体不舒服请尽快就医，听医生的，商品没有治疗作用，咱们接着看直播间的商品。",
}
DECLINED = re.compile(r"帮不上|没法|不方便|婉拒|带回|就医|医生|医疗|医院|不给|治病")
# A fact of fewer letters may stand in a reply by chance.
TELLING = 4
UNKNOWN = re.compile(r"核实|verify|check", re.IGNORECASE)


@dataclass(frozen=True)
class Cause:
    """Why a case fails; `subject` is the skill or the tool that it is about, if any."""

    kind: str
    subject: str = ""


def causes_of(case: Brief, view: HarnessView) -> set[Cause]:
    """What went wrong in one case; what the harness has a rule for already only when there is nothing else."""
    kinds = case.kinds()
    found = {Cause("wrong_language")} if "wrong_language" in kinds else set()
    if case.promises():
        found.add(Cause("forbidden_claim"))
    elif "unsupported_claim" in kinds:
        found.add(Cause("unsupported_claim"))
    if "unanswered" in kinds and not has_rule("unanswered", view):
        # Facts are missing because whole danmaku are.
        return {*found, Cause("unanswered")}
    found |= {_missing_cause(case, view, fact) for fact in case.texts("missing_fact")}
    mistaken = {Cause("judge_error"), Cause("bad_label")} & found
    if mistaken and found <= mistaken | {Cause("forbidden_claim")}:
        # What a label forbids and demands at once is no promise of the model's.
        return mistaken
    # One more rule with the same words mends nothing.
    return {Cause("other") if has_rule(cause.kind, view) else cause for cause in found}


def has_rule(kind: str, view: HarnessView) -> bool:
    """Whether the harness has the rule for the kind already, in these words or in others."""
    if kind not in RULES:
        return False
    rules = view.rules(view.rules_path())
    pattern = RULES[kind]
    wording = say(f"{kind}.rule", chinese=view.chinese)
    return any(rule == wording or (pattern is not None and pattern.search(rule)) for rule in rules)


def best_tool(case: Brief, view: HarnessView, *facts: str) -> str | None:
    """The tool whose documentation is closest to the danmaku and the facts; None when none is close."""
    names = tuple(sorted(view.harness.tools))
    index = _tool_index(tuple(tool_text(view.harness.tools[name]) for name in names))
    scores = index.scores(" ".join([_asked_for(case, facts), *(facts or case.texts("missing_fact"))]))
    best = max(range(len(names)), key=lambda i: (scores[i], -i), default=None)
    return names[best] if best is not None and scores[best] >= TOOL_FITS else None


def common_tool(cases: Sequence[Brief], view: HarnessView) -> str | None:
    """The tool that most of the cases are about."""
    votes = Counter(tool for case in cases if (tool := best_tool(case, view)))
    return max(sorted(votes), key=lambda name: votes[name], default=None)


def only_talks(name: str, view: HarnessView) -> bool:
    """Whether a skill has lines to say and calls no tool."""
    body = view.harness.skills[name].body
    return ("话术" in body or "script" in body.lower()) and not any(
        tool in body for tool in view.harness.tools
    )


@lru_cache(maxsize=64)
def _tool_index(texts: tuple[str, ...]) -> Index:
    return Index.of(texts)


def _asked_for(case: Brief, facts: Sequence[str]) -> str:
    """The danmaku that the facts answer: of several, the closest one."""
    said = case.said()
    if len(said) < 2 or not facts:
        return case.danmaku()
    scores = Index.of(said).scores(" ".join(facts))
    return said[max(range(len(said)), key=lambda i: (scores[i], -i))] if any(scores) else case.danmaku()


def _missing_cause(case: Brief, view: HarnessView, fact: str) -> Cause:
    if any(_plain(fact) in _plain(claim) for claim in case.texts("forbidden_claim")):
        return Cause("bad_label")
    if len(_plain(fact)) >= TELLING and _plain(fact) in _plain(case.reply):
        return Cause("judge_error")
    talked = [name for name in case.skills() if name in view.harness.skills and only_talks(name, view)]
    talkers = talked or [name for name in sorted(view.harness.skills) if only_talks(name, view)]
    if any(word in fact for word in MANNERS) and talkers and not DECLINED.search(fact):
        return Cause("script", talkers[0])
    if DECLINED.search(fact) or any(tag.startswith("#outside") for tag in meanings(case.danmaku())):
        return Cause("decline")
    if UNKNOWN.search(fact):
        return Cause("not_returned")
    tool = best_tool(case, view, fact)
    return _tool_cause(case, tool, view) if tool else Cause("other")


def _plain(text: str) -> str:
    return re.sub(r"\W+", "", text).casefold()


def _tool_cause(case: Brief, tool: str, view: HarnessView) -> Cause:
    users = [skill.name for skill in view.skills_naming(tool)]
    loaded = [name for name in case.skills() if name in users]
    if case.called(tool):
        return Cause("statement", (loaded or users or [""])[0])
    if loaded:
        return Cause("step", tool)
    return Cause("description" if users else "new_skill", tool)
