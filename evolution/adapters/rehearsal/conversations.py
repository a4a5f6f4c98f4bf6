"""Plans for failures that no judge commented on: by what the agents did, in whatever domain.

All there is to go by is the tool calls, and the rules that the harness has on them.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import Brief, HarnessView
from evolution.adapters.rehearsal.plans import Plan
from evolution.adapters.rehearsal.reading import sections
from evolution.adapters.rehearsal.text import words
from evolution.adapters.rehearsal.wording import say

# Tools that change something, by the first word of their name.
WRITES = re.compile(
    r"^(?:book|cancel|update|modify|change|create|send|delete|add|remove|set|exchange|return|pay|place|submit|buy|order)_"
)
HANDS_OVER = re.compile(r"transfer|escalate|human|转人工")
# This many refused calls in one conversation are no accident.
REFUSED = 2
ORDER = ("errors", "writes", "transfer", "idle", "symptom")
# Word endings are ignored from this length on: cancelled, cancellation, cancel.
STEM = 5


@dataclass(frozen=True)
class Conduct:
    """What an agent did in a failed conversation; `tool` is the one concerned, if any."""

    kind: str
    tool: str = ""


def common_conduct(cases: Sequence[Brief]) -> tuple[Conduct, list[Brief]]:
    """What most of the cases have in common, and those that have it."""
    seen = [(conduct_of(case), case) for case in cases]
    votes = Counter(conduct for conduct, _ in seen)
    ranked = sorted(votes, key=lambda conduct: (-votes[conduct], ORDER.index(conduct.kind), conduct.tool))
    best = ranked[0] if ranked else Conduct("symptom")
    return best, [case for conduct, case in seen if conduct == best]


def conduct_of(case: Brief) -> Conduct:
    """The most telling thing that the agent did: was refused again and again, handed over, changed data, or nothing."""
    calls = case.calls()
    if not calls:
        return Conduct("symptom")
    refused = Counter(str(call.get("name")) for call in calls if call.get("error"))
    if refused and max(refused.values()) >= REFUSED:
        return Conduct("errors", max(sorted(refused), key=lambda name: refused[name]))
    names = [str(call.get("name")) for call in calls]
    handed = [name for name in names if HANDS_OVER.search(name)]
    written = [name for name in names if WRITES.match(name)]
    if handed and not written:
        return Conduct("transfer", handed[-1])
    return Conduct("writes", written[-1]) if written else Conduct("idle")


def plan_for_conduct(conduct: Conduct, cases: Sequence[Brief], view: HarnessView) -> Plan:
    """A rule for what the agents did; less certain than one that rests on a judge's findings."""
    zh, path = view.chinese, view.rules_path()
    values = {
        "tool": conduct.tool,
        "count": len(cases),
        "policy": _policy_on(conduct.tool, view),
        "error": _refusal(conduct.tool, cases),
        "symptom": " ".join(next((case.symptom for case in cases if case.symptom), "").split())[:120],
    }
    rule = say(f"{conduct.kind}.rule", chinese=zh, **values)
    return Plan(
        "prompt",
        path,
        say(f"{conduct.kind}.hypothesis", chinese=zh, **values),
        say(f"{conduct.kind}.refuted", chinese=zh, **values),
        [sentences.add_rule(path, rule, chinese=zh)],
        wrong_turn=_usual_turn(conduct.tool, cases),
        certainty=0.6,
    )


def name_conduct(conduct: Conduct, cases: Sequence[Brief], view: HarnessView) -> str:
    """A name for a cluster of such cases."""
    if conduct.kind == "symptom":
        symptom = next((case.symptom for case in cases if case.symptom), "")
        return " ".join(symptom.split())[:60] or say("symptom.unknown", chinese=view.chinese)
    return say(f"{conduct.kind}.name", chinese=view.chinese, tool=conduct.tool)[:80]


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
    return next((text[:120] for text in results if isinstance(text, str)), "")


def _usual_turn(tool: str, cases: Sequence[Brief]) -> int | None:
    """The turn of the tool's first call in most of the cases; None without a tool."""
    first = [
        next((int(call.get("turn") or 0) for call in case.calls() if call.get("name") == tool), 0)
        for case in cases
    ]
    turns = Counter(turn for turn in first if turn).most_common(1)
    return turns[0][0] if turns else None
