"""A proposal's manifest: what it rests on, what it should mend, and which passing cases it puts at risk."""

import re
from collections.abc import Iterable
from typing import Any

from evolution.loop.evaluation import UNDISTURBED
from evolution.loop.taken_failures import has_passed
from evolution.models import CaseResult, Evaluation, FailureCase, Proposal
from evolution.states import CaseState, EvaluationState, Split

# Longer lists of cases at risk say little; the number is kept.
MOST_LISTED = 50

_PART = re.compile(r"(skills|tools)/([^/]+?)(?:/.*|\.ya?ml)")


def build_manifest(
    proposal: Proposal, changed: Iterable[str], effect: str, risks: list[str]
) -> dict[str, Any]:
    """Return the manifest for the files that the branch changes.

    `expected_fixes` are ids of failure cases and `expected_keys` the keys of their dataset cases; `at_risk`
    are keys of dev cases, the first MOST_LISTED of `at_risk_total`.
    """
    fixes = list(_failures(proposal))
    at_risk = find_cases_at_risk(proposal, set(changed))
    diagnosis = proposal.diagnosis
    return {
        "evidence": diagnosis.evidence if diagnosis else [],
        "expected_fixes": [case.pk for case in fixes],
        "expected_keys": sorted({case.dataset_case.key for case in fixes if case.dataset_case}),
        "at_risk": at_risk[:MOST_LISTED],
        "at_risk_total": len(at_risk),
        "expected_effect": effect,
        "risks": risks,
    }


def find_cases_at_risk(proposal: Proposal, changed: set[str]) -> list[str]:
    """Keys of dev cases that passed on the base and used a changed skill or tool; for other files, all."""
    evaluation = Evaluation.objects.filter(
        UNDISTURBED,
        harness=proposal.harness,
        commit=proposal.base_commit,
        state=EvaluationState.FINISHED,
        # What was measured elsewhere has cases of its own.
        origin={},
    ).first()
    if evaluation is None:
        return []
    parts = [_PART.fullmatch(path) for path in changed]
    everywhere = not all(parts)
    names = {(part[1], part[2]) for part in parts if part}
    results = CaseResult.objects.filter(evaluation=evaluation, case__split=Split.DEV, accuracy__isnull=False)
    failed = set()
    touched = set()
    for result in results.select_related("case").defer(
        "judge_trajectory", "case__fixtures", "case__expected"
    ):
        if not has_passed(result.accuracy or 0, result.effectiveness or 0):
            failed.add(result.case.key)
        elif everywhere or names & _used_parts(result.trajectory):
            touched.add(result.case.key)
    return sorted(touched - failed)


def _used_parts(trajectory: dict[str, Any]) -> set[tuple[str, str]]:
    skills = {("skills", str(name)) for name in trajectory.get("skills_loaded") or []}
    calls = trajectory.get("tool_calls") or []
    return skills | {("tools", str(call.get("name"))) for call in calls if isinstance(call, dict)}


def _failures(proposal: Proposal) -> Iterable[FailureCase]:
    if proposal.diagnosis is None:
        return []
    members = FailureCase.objects.filter(cluster_id=proposal.diagnosis.cluster_id, state=CaseState.OPEN)
    return members.select_related("dataset_case").order_by("pk")
