"""The rehearsal diagnoser: counts what the judge found, follows it to the part that is to blame, proposes changes."""

import json
import re
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import Any, TypeVar

from evolution.adapters.rehearsal.briefs import Brief, HarnessView, read_briefs
from evolution.adapters.rehearsal.causes import Cause, causes_of, common_tool
from evolution.adapters.rehearsal.conversations import (
    Conduct,
    name_conduct,
    plan_for_conduct,
    quote_conduct,
    rank_conducts,
    wrong_turn_of,
)
from evolution.adapters.rehearsal.plans import Plan
from evolution.adapters.rehearsal.policy import Turn
from evolution.adapters.rehearsal.skill_plans import plan_for
from evolution.adapters.rehearsal.wording import listed, say
from evolution.prompts.fences import read_fenced
from harness_repo.runtime.chat import ChatRequest

# Where several causes are equally frequent, the one that does most harm.
ORDER = (
    "forbidden_claim",
    "unsupported_claim",
    "wrong_language",
    "unanswered",
    "not_returned",
    "new_skill",
    "description",
    "step",
    "statement",
    "decline",
    "script",
    "bad_label",
    "judge_error",
    "other",
)
# Causes that are named for what they are; the others show as facts that are missing.
NAMED = frozenset(ORDER[:5]) | {"decline", "script", "bad_label", "judge_error"}
# Kind of fault by cause, where the plan knows none of its own.
CATEGORIES = {
    "forbidden_claim": "unverified_claim",
    "unsupported_claim": "unverified_claim",
    "wrong_language": "wrong_language",
    "unanswered": "incomplete_task",
    "not_returned": "unverified_claim",
    "new_skill": "missing_skill",
    "description": "wrong_skill",
    "step": "wrong_tool",
    "statement": "missing_instruction",
    "decline": "missing_skill",
    "script": "missing_instruction",
}

# A further cause is a hypothesis of its own when it explains this many of the cases.
FURTHER_CASES = 2
MAX_CAUSES = 4
# How the place of a cut begins.
CUT = "[… "
MAX_EVIDENCE = 3
MAX_QUOTE = 120
Explained = TypeVar("Explained")
SENTENCE = re.compile(r"[。！？.!?](?:\s|$|(?<=[。！？]))")


def answer_as_diagnoser(request: ChatRequest) -> Turn:
    """The diagnosis of the cases that the prompt shows, as JSON."""
    blocks = read_fenced("\n\n".join(str(message.get("content") or "") for message in request.messages))
    cases = read_briefs(blocks.get("cases"))
    view = HarnessView.of(blocks.get("files"))
    return Turn(json.dumps(diagnose(cases, view), ensure_ascii=False))


def diagnose(cases: Sequence[Brief], view: HarnessView) -> dict[str, Any]:
    """A DiagnosisOutput as a dict: a hypothesis for the most frequent cause, and for the further ones that count."""
    ranked = rank_causes(cases, view)
    if not ranked:
        return _diagnose_conduct(cases, view)
    main, failing = ranked[0]
    found = [_explain_cause(cause, mine, cases, view) for cause, mine in _telling(ranked)]
    return {
        "cluster_name": _name(main, failing, view),
        "cluster_description": _describe(_failure(main, view), failing, cases, view),
        "hypotheses": _without_repeats(found),
    }


def _diagnose_conduct(cases: Sequence[Brief], view: HarnessView) -> dict[str, Any]:
    """No judge found anything: what the agents did is all there is to go by."""
    ranked = rank_conducts(cases, view)
    conduct, alike = ranked[0]
    name = name_conduct(conduct, alike, view)
    found = [_explain_conduct(each, mine, cases, view) for each, mine in _telling(ranked)]
    return {
        "cluster_name": name,
        "cluster_description": _describe(name, alike, cases, view),
        "hypotheses": _without_repeats(found),
    }


def _telling(ranked: Sequence[tuple[Explained, list[Brief]]]) -> list[tuple[Explained, list[Brief]]]:
    """The first, and the further ones that explain enough."""
    further = [entry for entry in ranked[1:] if len(entry[1]) >= FURTHER_CASES]
    return [*ranked[:1], *further][:MAX_CAUSES]


def _explain_cause(
    cause: Cause, failing: Sequence[Brief], cases: Sequence[Brief], view: HarnessView
) -> dict[str, Any]:
    plan = plan_for(cause, failing, view)
    category = plan.category or CATEGORIES.get(cause.kind, "other")
    turns = [(case.id, min(plan.wrong_turn or case.last_turn(), case.last_turn())) for case in failing]
    evidence = _evidence((case.id, *_quote(cause.kind, case)) for case in failing)
    return _hypothesis(plan, category, evidence, turns, len(failing) / max(1, len(cases)))


def _explain_conduct(
    conduct: Conduct, alike: Sequence[Brief], cases: Sequence[Brief], view: HarnessView
) -> dict[str, Any]:
    plan = plan_for_conduct(conduct, alike, view)
    turns = [(case.id, turn) for case in alike if (turn := wrong_turn_of(conduct, case))]
    evidence = _evidence((case.id, *_passage(conduct, case)) for case in alike)
    return _hypothesis(plan, plan.category or "other", evidence, turns, len(alike) / max(1, len(cases)))


def _hypothesis(
    plan: Plan,
    category: str,
    evidence: list[dict[str, Any]],
    turns: Sequence[tuple[str, int]],
    share: float,
) -> dict[str, Any]:
    return {
        "category": category,
        "part": plan.part,
        "path": plan.path,
        "hypothesis": plan.hypothesis,
        "confidence": round(min(0.95, 0.3 + 0.5 * share) * plan.certainty, 2),
        "evidence": evidence,
        "first_wrong_turns": [{"case": case, "turn": turn} for case, turn in turns if turn > 0],
        "changes": list(plan.changes),
        "refuted_by": plan.refuted_by,
    }


def _without_repeats(found: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Two causes can lead to one change; the more frequent one keeps it. None is surer than the ones before it."""
    kept: dict[tuple[str, ...], dict[str, Any]] = {}
    for each in found:
        kept.setdefault((each["path"], *(each["changes"] or [each["hypothesis"]])), each)
    ranked = list(kept.values())
    for before, after in pairwise(ranked):
        after["confidence"] = min(before["confidence"], after["confidence"])
    return ranked


def rank_causes(cases: Sequence[Brief], view: HarnessView) -> list[tuple[Cause, list[Brief]]]:
    """The causes with the cases they explain, most frequent first; empty when the judge found nothing."""
    explained: dict[Cause, list[Brief]] = {}
    for case in cases:
        for cause in causes_of(case, view):
            explained.setdefault(cause, []).append(case)
    if any(cause.kind != "other" for cause in explained):
        # What nothing is known of explains nothing.
        explained = {cause: mine for cause, mine in explained.items() if cause.kind != "other"}
    return sorted(
        explained.items(), key=lambda entry: (-len(entry[1]), ORDER.index(entry[0].kind), entry[0].subject)
    )


def _failure(cause: Cause, view: HarnessView) -> str:
    return say(cause.kind if cause.kind in NAMED else "missing", chinese=view.chinese)


def _name(cause: Cause, cases: Sequence[Brief], view: HarnessView) -> str:
    tool = cause.subject if cause.subject in view.harness.tools else common_tool(cases, view)
    categories = Counter(case.category for case in cases if case.category).most_common(1)
    other = categories[0][0].replace("_", " ") if categories else say("subject.any", chinese=view.chinese)
    subject = view.subject(tool) if tool else other
    return say("name", chinese=view.chinese, subject=subject, failure=_failure(cause, view))[:80]


def _describe(failure: str, failing: Sequence[Brief], cases: Sequence[Brief], view: HarnessView) -> str:
    said = [_cut(" ".join(case.said()[:2]), 80) for case in failing[:2]]
    return say(
        "describe",
        chinese=view.chinese,
        all=len(cases),
        count=len(failing),
        failure=failure,
        asked=listed(said, chinese=view.chinese),
    )


def _evidence(found: Iterable[tuple[str, int, str]]) -> list[dict[str, Any]]:
    entries = [{"case": case, "turn": turn, "quote": quote} for case, turn, quote in found if quote]
    return entries[:MAX_EVIDENCE] or [{"case": "", "turn": 0, "quote": "?"}]


def _quote(kind: str, case: Brief) -> tuple[int, str]:
    """A passage that the case really has: the claim, else the reply, else the danmaku, else the symptom."""
    claims = [
        text for text in case.texts("forbidden_claim", "unsupported_claim") if text and text in case.reply
    ]
    if kind in {"forbidden_claim", "unsupported_claim"} and claims:
        return case.last_turn(), _cut(claims[0])
    left = [text for text in case.texts("unanswered") if text in case.said()]
    if kind == "unanswered" and left:
        return 0, _cut(left[0])
    if case.reply:
        return case.last_turn(), _cut(case.reply)
    return 0, _cut(next(iter(case.said()), "") or case.symptom)


def _passage(conduct: Conduct, case: Brief) -> tuple[int, str]:
    turn, text = quote_conduct(conduct, case)
    return (turn, _cut(text)) if text else _quote(conduct.kind, case)


def _cut(text: str, limit: int = MAX_QUOTE) -> str:
    """The beginning of a text as one line, up to the end of a sentence or a word where there is one."""
    # What stands around a cut stands nowhere as one passage.
    line = re.sub(r"\s+", " ", text.split(CUT, 1)[0]).strip()
    if len(line) <= limit:
        return line
    head = line[:limit]
    ended = re.sub(r"(?<=[。！？.!?])[^。！？.!?]*$", "", head)
    # A greeting alone says nothing.
    return ended if SENTENCE.search(head) and len(ended) * 2 >= limit else head.rsplit(" ", 1)[0]
