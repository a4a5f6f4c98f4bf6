"""What to change for the cases of one cause: rules and hooks here, skills in `skill_plans`.

The sentences of `changes` are what the editor reads, and what a developer amends; `sentences` has their forms.
"""

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from evolution.adapters.rehearsal import sentences
from evolution.adapters.rehearsal.briefs import Brief, HarnessView
from evolution.adapters.rehearsal.causes import common_tool
from evolution.adapters.rehearsal.phrases import common_claims, free_path, matching_fields, tool_stem
from evolution.adapters.rehearsal.wording import listed, say

# From this many rules on, a claim is caught by a hook instead of one more rule.
LONG_LIST = 20
# Facts that a hypothesis names.
MOST_SAID = 2
SEARCH = re.compile(r"^search_\w*(?:faq|knowledge|docs|help)")


@dataclass(frozen=True)
class Plan:
    """What is to blame and what to change."""

    part: str
    path: str
    hypothesis: str
    refuted_by: str
    changes: Sequence[str] = field(default_factory=list)
    wrong_turn: int | None = None
    # factor on the confidence
    certainty: float = 1.0
    # kind of fault, where it is not that of the cause
    category: str = ""


def plan_for_claims(cases: Sequence[Brief], view: HarnessView) -> Plan:
    """A rule that quotes the claims; a hook when the list of rules is long already."""
    zh, claims, path = view.chinese, common_claims(cases), view.rules_path()
    said, count = listed(claims, chinese=zh), len(view.rules(path))
    if count >= LONG_LIST:
        hook = free_path(view, "hooks/forbid_{}.yaml", _stem(cases, view))
        return Plan(
            "hook",
            hook,
            say("claims.long", chinese=zh, count=count, said=said),
            say("claims.long_refuted", chinese=zh),
            [sentences.forbid_by_hook(hook, claims, chinese=zh)],
        )
    # Several ways to say a thing are a kind of thing.
    rule = say("claims.rule_general" if len(claims) > 1 else "claims.rule", chinese=zh, said=said)
    return Plan(
        "prompt",
        path,
        say("claims.hypothesis", chinese=zh, said=said),
        say("claims.refuted", chinese=zh),
        [sentences.add_rule(path, rule, chinese=zh)],
    )


def plan_for_rule(kind: str, view: HarnessView) -> Plan:
    """The one rule that says what was not done."""
    zh, path = view.chinese, view.rules_path()
    return Plan(
        "prompt",
        path,
        say(f"{kind}.hypothesis", chinese=zh),
        say("rule.refuted", chinese=zh),
        [sentences.add_rule(path, say(f"{kind}.rule", chinese=zh), chinese=zh)],
    )


def plan_for_the_rest(cases: Sequence[Brief], view: HarnessView) -> Plan:
    """The harness asks for it already, or no result has it; a search that no skill uses may have it."""
    search = next((name for name in sorted(view.harness.tools) if SEARCH.match(name)), None)
    users = Counter(name for case in cases for name in case.skills() if name in view.harness.skills)
    if search and users and not view.skills_naming(search):
        return _plan_for_search(search, view.harness.skills[users.most_common(1)[0][0]].path, view)
    return _plan_for_the_unknown(cases, view)


def _plan_for_search(tool: str, path: str, view: HarnessView) -> Plan:
    zh, labels = view.chinese, view.labels(tool)
    call = say("call", chinese=zh, tool=tool, subject=view.subject(tool))
    fields = ("、" if zh else ", ").join(
        f"{name}（{label}）" if zh else name for name, label in labels.items()
    )
    return Plan(
        "skill",
        path,
        say("search.hypothesis", chinese=zh, tool=tool),
        say("search.refuted", chinese=zh, tool=tool),
        [
            sentences.amend_skill(path, sentences.STEPS, call, chinese=zh),
            sentences.amend_skill(path, sentences.STATE, say("state", chinese=zh, fields=fields), chinese=zh),
        ],
        certainty=0.6,
        category="wrong_tool",
    )


def _plan_for_the_unknown(cases: Sequence[Brief], view: HarnessView) -> Plan:
    """One more general rule while there is one that the harness lacks; after that nobody can make it clearer."""
    zh = view.chinese
    known = any(matching_fields(case) for case in cases)
    rules = view.rules(view.rules_path())
    kinds = ("model", "not_returned") if known else ("not_returned", "model")
    rule = next((text for kind in kinds if (text := say(f"{kind}.rule", chinese=zh)) not in rules), None)
    hypothesis = say("model.hypothesis" if known else "knowledge.hypothesis", chinese=zh)
    refuted = say("model.refuted", chinese=zh)
    if rule is None:
        part, category = ("model", "model_limit") if known else ("knowledge", "missing_knowledge")
        return Plan(part, "", hypothesis, refuted, certainty=0.6, category=category)
    path = view.rules_path()
    change = sentences.add_rule(path, rule, chinese=zh)
    category = "ignored_instruction" if known else "missing_instruction"
    why = say("unknown.rule_missing", chinese=zh, hypothesis=hypothesis)
    return Plan("prompt", path, why, refuted, [change], certainty=0.6, category=category)


def plan_for_the_judge(kind: str, cases: Sequence[Brief], view: HarnessView) -> Plan:
    """Nothing to change in the harness: the judge overlooked what the reply says, or the label contradicts itself."""
    zh = view.chinese
    said = listed(
        list(dict.fromkeys(text for case in cases for text in case.texts("missing_fact")))[:MOST_SAID],
        chinese=zh,
    )
    return Plan(
        "judge" if kind == "judge_error" else "label",
        "",
        say(f"{kind}.hypothesis", chinese=zh, said=said),
        say(f"{kind}.refuted", chinese=zh),
        certainty=0.8,
        category=kind,
    )


def _stem(cases: Sequence[Brief], view: HarnessView) -> str:
    tool = common_tool(cases, view)
    if tool:
        return tool_stem(tool)
    return re.sub(r"[^a-z0-9_]", "", cases[0].category.lower()) if cases and cases[0].category else "claims"
