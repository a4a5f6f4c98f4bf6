"""The rehearsal diagnoser: counts what the judge found, follows it to the part that is to blame, proposes changes."""

import json
import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from evolution.adapters.rehearsal.blame import (
    Cause,
    Plan,
    causes_of,
    common_tool,
    plan_for,
    plan_without_findings,
)
from evolution.adapters.rehearsal.briefs import Brief, HarnessView, read_briefs
from evolution.adapters.rehearsal.policy import Turn
from evolution.prompts.fences import read_fenced
from harness_repo.runtime.chat import ChatRequest

# Where several causes are equally frequent, the one that does most harm.
ORDER = (
    "forbidden_claim",
    "unsupported_claim",
    "wrong_language",
    "unanswered",
    "new_skill",
    "description",
    "step",
    "statement",
    "decline",
    "script",
    "other",
)
KIND_NAMES = {
    "forbidden_claim": "说了不许说的承诺",
    "unsupported_claim": "没有依据却不核实",
    "wrong_language": "没有用观众的语言回复",
    "unanswered": "有弹幕没有回应",
    "decline": "该婉拒的没有婉拒",
    "script": "话术里没有合适的一句",
}
MISSING = "没有说到观众要的信息"

# A further cause gets its changes too, when it explains this many of the cases.
FURTHER_CASES = 3
MAX_CAUSES = 3
MAX_EVIDENCE = 3
MAX_QUOTE = 120


def answer_as_diagnoser(request: ChatRequest) -> Turn:
    """The diagnosis of the cases that the prompt shows, as JSON."""
    blocks = read_fenced("\n\n".join(str(message.get("content") or "") for message in request.messages))
    cases = read_briefs(blocks.get("cases"))
    view = HarnessView.of(blocks.get("files"))
    return Turn(json.dumps(diagnose(cases, view), ensure_ascii=False))


def diagnose(cases: Sequence[Brief], view: HarnessView) -> dict[str, Any]:
    """A DiagnosisOutput as a dict: the most frequent cause, and the changes for the further ones that count."""
    ranked = rank_causes(cases, view)
    if not ranked:
        return _output(Cause("other"), plan_without_findings(cases, view), list(cases), cases, view)
    main, failing = ranked[0]
    plan = plan_for(main, failing, view)
    further = [
        plan_for(cause, mine, view) for cause, mine in ranked[1:MAX_CAUSES] if len(mine) >= FURTHER_CASES
    ]
    changes = list(dict.fromkeys(change for each in (plan, *further) for change in each.changes))
    return _output(main, replace(plan, changes=changes), failing, cases, view)


def rank_causes(cases: Sequence[Brief], view: HarnessView) -> list[tuple[Cause, list[Brief]]]:
    """The causes with the cases they explain, most frequent first; empty when the judge found nothing."""
    explained: dict[Cause, list[Brief]] = {}
    for case in cases:
        for cause in causes_of(case, view):
            explained.setdefault(cause, []).append(case)
    return sorted(
        explained.items(), key=lambda entry: (-len(entry[1]), ORDER.index(entry[0].kind), entry[0].subject)
    )


def _output(
    cause: Cause, plan: Plan, failing: Sequence[Brief], cases: Sequence[Brief], view: HarnessView
) -> dict[str, Any]:
    share = len(failing) / max(1, len(cases))
    return {
        "cluster_name": _name(cause, failing, view),
        "cluster_description": _describe(cause, failing, cases),
        "part": plan.part,
        "path": plan.path,
        "hypothesis": plan.hypothesis,
        "confidence": round(min(0.95, 0.3 + 0.5 * share) * plan.certainty, 2),
        "evidence": _evidence(cause, failing),
        "first_wrong_turn": _first_wrong_turn(plan, failing),
        "changes": list(plan.changes),
        "refuted_by": plan.refuted_by,
    }


def _name(cause: Cause, cases: Sequence[Brief], view: HarnessView) -> str:
    if not any(case.findings for case in cases):
        return _cut(cases[0].symptom or "原因不明的失败", 40) if cases else "原因不明的失败"
    tool = cause.subject if cause.subject in view.harness.tools else common_tool(cases, view)
    categories = Counter(case.category for case in cases if case.category).most_common(1)
    subject = view.subject(tool) if tool else (categories[0][0] if categories else "直播间弹幕")
    return f"{subject}：{KIND_NAMES.get(cause.kind, MISSING)}"


def _describe(cause: Cause, failing: Sequence[Brief], cases: Sequence[Brief]) -> str:
    asked = "、".join(f"「{_cut(case.danmaku(), 20)}」" for case in failing[:2])
    return (
        f"{len(cases)} 个案例里有 {len(failing)} 个{KIND_NAMES.get(cause.kind, MISSING)}，例如弹幕{asked}。"
    )


def _evidence(cause: Cause, cases: Sequence[Brief]) -> list[dict[str, Any]]:
    found = [{"case": case.id, **_quote(cause.kind, case)} for case in cases[:MAX_EVIDENCE]]
    return [entry for entry in found if entry["quote"]] or [{"case": "", "turn": 0, "quote": "?"}]


def _quote(kind: str, case: Brief) -> dict[str, Any]:
    """A passage that the case really has: the claim, else the reply, else the danmaku, else the symptom."""
    claims = [
        text for text in case.texts("forbidden_claim", "unsupported_claim") if text and text in case.reply
    ]
    if kind in {"forbidden_claim", "unsupported_claim"} and claims:
        return {"turn": case.last_turn(), "quote": claims[0][:MAX_QUOTE]}
    left = [text for text in case.texts("unanswered") if text in case.said()]
    if kind == "unanswered" and left:
        return {"turn": 0, "quote": left[0][:MAX_QUOTE]}
    if case.reply:
        return {"turn": case.last_turn(), "quote": case.reply[:MAX_QUOTE]}
    return {"turn": 0, "quote": (next(iter(case.said()), "") or case.symptom)[:MAX_QUOTE]}


def _first_wrong_turn(plan: Plan, cases: Sequence[Brief]) -> int | None:
    if plan.wrong_turn is not None:
        return plan.wrong_turn
    turns = Counter(case.last_turn() for case in cases).most_common(1)
    return turns[0][0] if turns and turns[0][0] else None


def _cut(text: str, limit: int) -> str:
    return re.sub(r"\s+", " ", text)[:limit]
