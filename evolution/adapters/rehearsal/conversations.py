"""Plans for failures that no judge commented on: by what the agents did, in whatever domain.

All there is to go by is the tool calls, and the rules that the harness has on them.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import Brief, HarnessView
from evolution.adapters.rehearsal.causes import best_tool
from evolution.adapters.rehearsal.plans import Plan
from evolution.adapters.rehearsal.reading import sections
from evolution.adapters.rehearsal.text import clip, words
from evolution.adapters.rehearsal.wording import say

# Tools that change something, by the first word of their name.
WRITES = re.compile(
    r"^(?:book|cancel|update|modify|change|create|send|delete|add|remove|set|exchange|return|pay|place|submit|buy|order)_"
)
HANDS_OVER = re.compile(r"transfer|escalate|human|转人工")
# This many refused calls in one conversation are no accident.
REFUSED = 2
ORDER = ("errors", "writes", "transfer", "idle", "symptom", "foreign")
CATEGORIES = {
    "errors": "wrong_arguments",
    "writes": "policy_violation",
    "transfer": "premature_end",
    "idle": "incomplete_task",
    "symptom": "other",
    "foreign": "other",
}
# How many of the tools that the harness does not have are named.
MOST_TOOLS = 2
MAX_QUOTED = 120
MAX_NAME = 80
# Of the longer words of a conversation, this share stands in the harness of its agent: 0.58 is the median of an
# airline's real ones with their own policy and tools, 0.36 the highest with those of a shop.
AT_HOME = 0.4
# Word endings are ignored from this length on: cancelled, cancellation, cancel.
STEM = 5


@dataclass(frozen=True)
class Conduct:
    """What an agent did in a failed conversation; `tool` is the one concerned, if any."""

    kind: str
    tool: str = ""


def rank_conducts(cases: Sequence[Brief], view: HarnessView) -> list[tuple[Conduct, list[Brief]]]:
    """What cases have in common with those that have it, the most frequent first; never empty."""
    seen = [(conduct_of(case, view), case) for case in cases]
    votes = Counter(conduct for conduct, _ in seen)
    ranked = sorted(votes, key=lambda conduct: (-votes[conduct], ORDER.index(conduct.kind), conduct.tool))
    found = [(best, [case for conduct, case in seen if conduct == best]) for best in ranked]
    return found or [(Conduct("symptom"), [])]


def conduct_of(case: Brief, view: HarnessView) -> Conduct:
    """The most telling thing that the agent did: was refused again and again, handed over, changed data, or nothing.

    `foreign` when another agent did it.
    """
    if is_foreign(case, view):
        return Conduct("foreign")
    calls = case.calls()
    if not calls and _is_at_home(case, view):
        return Conduct("idle")
    if not calls:
        return Conduct("symptom", best_tool(case, view, case.symptom) or "")
    refused = Counter(str(call.get("name")) for call in calls if call.get("error"))
    if refused and max(refused.values()) >= REFUSED:
        return Conduct("errors", max(sorted(refused), key=lambda name: refused[name]))
    names = [str(call.get("name")) for call in calls]
    handed = [name for name in names if HANDS_OVER.search(name)]
    written = [name for name in names if WRITES.match(name)]
    if handed and not written:
        return Conduct("transfer", handed[-1])
    return Conduct("writes", written[-1]) if written else Conduct("idle")


def is_foreign(case: Brief, view: HarnessView) -> bool:
    """Whether the case has nothing to do with the tools and skills of the harness."""
    known = view.harness.tools
    if not known:
        return False
    if not case.trajectory:
        return best_tool(case, view, case.symptom) is None
    used = {str(call.get("name")) for call in case.calls()}
    if not used and _is_at_home(case, view):
        return False
    ended_well = case.trajectory.get("status", "ok") == "ok"
    return ended_well and not used & known.keys() and not set(case.skills()) & view.harness.skills.keys()


def _is_at_home(case: Brief, view: HarnessView) -> bool:
    """Whether a conversation without calls is about what the harness is about, by the words that both use."""
    said = _long_words(" ".join([*case.said(), case.reply])) if case.trajectory else set()
    return len(said & _long_words("\n".join(view.files.values()))) >= AT_HOME * max(1, len(said))


def _long_words(text: str) -> set[str]:
    return {word[:STEM] for word in words(text) if len(word) >= STEM}


def plan_for_conduct(conduct: Conduct, cases: Sequence[Brief], view: HarnessView) -> Plan:
    """A rule for what the agents did; less certain than one that rests on a judge's findings."""
    zh, path = view.chinese, view.rules_path()
    if conduct.kind == "foreign":
        return _plan_for_foreign(cases, view)
    values = {
        "tool": conduct.tool,
        "count": len(cases),
        "policy": _policy_on(conduct.tool, view),
        "error": _refusal(conduct.tool, cases),
        # For the hypothesis only: in a rule the words of a check mean nothing to a model.
        "symptom": clip(next((case.symptom for case in cases if case.symptom), ""), MAX_QUOTED),
        "subject": view.subject(conduct.tool),
    }
    rule = "symptom.rule_any" if conduct == Conduct("symptom") else f"{conduct.kind}.rule"
    return Plan(
        "prompt",
        path,
        say(f"{conduct.kind}.hypothesis", chinese=zh, **values),
        say(f"{conduct.kind}.refuted", chinese=zh, **values),
        [sentences.add_rule(path, say(rule, chinese=zh, **values), chinese=zh)],
        certainty=0.6,
        category=CATEGORIES[conduct.kind],
    )


def wrong_turn_of(conduct: Conduct, case: Brief) -> int | None:
    """The turn of the first call of the tool concerned, the refused one where it was refused; None without a call."""
    calls = [call for call in case.calls() if call.get("name") == conduct.tool]
    if conduct.kind == "errors":
        calls = [call for call in calls if call.get("error")]
    return next((turn for call in calls if (turn := int(call.get("turn") or 0))), None)


def _plan_for_foreign(cases: Sequence[Brief], view: HarnessView) -> Plan:
    """Nothing to change: no version of this harness made these cases."""
    zh, tools = view.chinese, _foreign_tools(cases, view)
    named = ("、" if zh else ", ").join(f"`{tool}`" for tool in tools)
    key = "foreign.hypothesis" if tools else "foreign.hypothesis_idle"
    return Plan(
        "knowledge",
        "",
        say(key, chinese=zh, count=len(cases), tools=named),
        say("foreign.refuted", chinese=zh),
        certainty=0.3,
    )


def _foreign_tools(cases: Sequence[Brief], view: HarnessView) -> list[str]:
    """The tools that most cases call and the harness does not have."""
    called = Counter(name for case in cases for name in {str(call.get("name")) for call in case.calls()})
    unknown = [name for name in called if name not in view.harness.tools]
    return sorted(unknown, key=lambda name: (-called[name], name))[:MOST_TOOLS]


def name_conduct(conduct: Conduct, cases: Sequence[Brief], view: HarnessView) -> str:
    """A name for a cluster of such cases, of whole words."""
    zh = view.chinese
    if conduct.kind == "foreign":
        tools = [tool.replace("_", " ") for tool in _foreign_tools(cases, view)]
        about = ", ".join(tools) or clip(" ".join(case.danmaku() for case in cases[:1]), 40)
        return clip(say("foreign.name", chinese=zh, about=about or "?"), MAX_NAME)
    if conduct == Conduct("symptom"):
        symptom = next((case.symptom for case in cases if case.symptom), "")
        return clip(symptom, 60) or say("symptom.unknown", chinese=zh)
    return clip(
        say(f"{conduct.kind}.name", chinese=zh, tool=conduct.tool, subject=view.subject(conduct.tool)),
        MAX_NAME,
    )


def quote_conduct(conduct: Conduct, case: Brief) -> tuple[int, str]:
    """The turn and a passage that shows it: the refusal, or what the agent said in the end; "" when there is none."""
    if conduct.kind == "errors":
        for call in case.calls():
            result = call.get("result")
            if call.get("name") == conduct.tool and call.get("error") and isinstance(result, str):
                return int(call.get("turn") or 0), result
    turns = [int(call.get("turn") or 0) for call in case.calls() if call.get("name") == conduct.tool]
    return (turns[-1] if turns else case.last_turn()), case.reply


def _policy_on(tool: str, view: HarnessView) -> str:
    """The section of the prompt that shares most words with the tool's name, as it is called in a sentence."""
    wanted = _stems(tool.replace("_", " "))
    best, most = "", 1
    for path in sorted(path for path in view.files if path.endswith(".md")):
        for name, lines in sections(view.files[path]):
            common = len(wanted & _stems(name)) * 2 + len(wanted & _stems(" ".join(lines)))
            if name and common > most:
                best, most = name, common
    key, values = ("section", {"name": best}) if best else ("the_policy", {})
    return say(key, chinese=view.chinese, **values)


def _stems(text: str) -> set[str]:
    return {word[:STEM] for word in words(text)}


def _refusal(tool: str, cases: Sequence[Brief]) -> str:
    results = [
        call.get("result")
        for case in cases
        for call in case.calls()
        if call.get("name") == tool and call.get("error")
    ]
    return next((clip(text, MAX_QUOTED) for text in results if isinstance(text, str)), "")
