"""A proposal's manifest: what it rests on, what it should mend, what it puts at risk, and what it adds to the harness.

Made anew whenever the branch moves. How the predictions in it come out is `predictions`'.
"""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from evolution.loop.explained import list_explained
from evolution.loop.growth import measure_growth
from evolution.loop.proposal_flags import count_flags
from evolution.loop.repositories import open_repository
from evolution.loop.risk import find_risk, find_touched
from evolution.loop.rules import Rule, RuleChanges, compare_rules, leave_out_unlisted
from evolution.models import Proposal
from harness_repo.git.diffs import FileDiff, parse_diff
from harness_repo.runtime.storable import make_storable

# Longer lists say little; the numbers are kept. Predictions are scored only where all cases at risk are listed.
MOST_AT_RISK = 5_000
MOST_RULES = 200
LONGEST_RULE = 500


def build_manifest(proposal: Proposal, head: str, effect: str, risks: list[str]) -> dict[str, Any]:
    """Return the manifest for what the branch at `head` changes of the proposal's base.

    `expected_fixes` are ids of the failure cases that its hypothesis explains, and `expected_keys` the keys of their
    dataset cases; `at_risk` are keys of dev cases, the first MOST_AT_RISK of `at_risk_total`, by the results of
    `measured_on` (an evaluation's id, None when nothing of the base is measured), and `reach` says what of the change
    how many of them used. `rules` holds what `compare_rules` found, `growth` what `measure_growth` did, `flags` how
    many there are (`total`, `dangerous`), `files` the changed lines of each file.
    """
    repository = open_repository(proposal.harness)
    base_files, head_files = repository.files(proposal.base_commit), repository.files(head)
    touched = find_touched(base_files, head_files)
    risk = find_risk(proposal, touched)
    diagnosis = proposal.diagnosis
    fixes = list_explained(diagnosis) if diagnosis is not None else []
    manifest: dict[str, Any] = {
        "evidence": diagnosis.evidence if diagnosis else [],
        "expected_fixes": [case.pk for case in fixes],
        "expected_keys": sorted({case.dataset_case.key for case in fixes if case.dataset_case}),
        "at_risk": risk.keys[:MOST_AT_RISK],
        "at_risk_total": len(risk.keys),
        "measured_on": risk.evaluation,
        "reach": risk.reach,
        "shown_everywhere": list(touched.shown_everywhere),
        "expected_effect": effect,
        "risks": risks,
        # A section that harness.yaml lists no longer takes its rules along, though its file stays.
        "rules": describe_rules(
            compare_rules(leave_out_unlisted(base_files), leave_out_unlisted(head_files))
        ),
        "growth": measure_growth(base_files, head_files),
        "flags": count_flags(proposal, base_files, head_files),
        "files": [_count_lines(file) for file in parse_diff(repository.diff(proposal.base_commit, head))],
    }
    # A branch that was pushed may have any bytes in the names of its files.
    stored: dict[str, Any] = make_storable(manifest)
    return stored


def describe_rules(changes: RuleChanges) -> dict[str, Any]:
    """The changes as JSON: the first MOST_RULES of each kind, and how many there are."""
    return {
        "added": [_describe(rule) for rule in changes.added[:MOST_RULES]],
        "removed": [_describe(rule) for rule in changes.removed[:MOST_RULES]],
        "changed": [
            {"old": _describe(old), "new": _describe(new)} for old, new in changes.changed[:MOST_RULES]
        ],
        "totals": {name: len(getattr(changes, name)) for name in ("added", "removed", "changed")},
    }


def _describe(rule: Rule) -> dict[str, Any]:
    return {**asdict(rule), "text": rule.text[:LONGEST_RULE]}


def _count_lines(file: FileDiff) -> dict[str, Any]:
    kinds: Sequence[str] = [line.kind for hunk in file.hunks for line in hunk.lines]
    return {
        "path": file.path,
        "old_path": file.old_path,
        "status": file.status,
        "added": kinds.count("+"),
        "removed": kinds.count("-"),
    }
