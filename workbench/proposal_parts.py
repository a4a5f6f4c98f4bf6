"""What the parts of proposal, step and comparison pages are given that speak of predictions and of the two halves."""

from typing import Any

from evolution.models import Evaluation, Proposal, Step
from evolution.queries.alone import read_alone
from evolution.queries.halves import Halves, compare_halves, find_division, read_halves
from evolution.queries.predictions import read_history, view_manifest, view_prediction
from workbench.flip_names import name_counts


def describe_parts(proposal: Proposal) -> dict[str, Any]:
    """For parts/manifest.html, prediction.html, drafter_history.html and alone.html."""
    return {
        "manifest_view": view_manifest(proposal),
        "history": read_history(proposal.harness, proposal.model),
        "drafter": proposal.model,
        **describe_alone(proposal),
    }


def describe_alone(proposal: Proposal) -> dict[str, object]:
    """For parts/alone.html and prediction.html, which change while a proposal is measured."""
    alone = read_alone(proposal)
    return {"prediction": view_prediction(proposal), "alone": alone, "flips": name_counts(alone.counts)}


def describe_halves(step: Step) -> dict[str, object]:
    """For parts/halves.html on a step's page."""
    return _describe(read_halves(step))


def describe_compared_halves(base: Evaluation, candidate: Evaluation) -> dict[str, object]:
    """The same where two evaluations are compared, if a step was made of their versions."""
    held_in = find_division(base, candidate)
    return _describe(compare_halves(base, candidate, held_in) if held_in else None)


def _describe(halves: Halves | None) -> dict[str, object]:
    return {"halves": halves, "both_halves": [halves.held_in, halves.held_out] if halves else []}
