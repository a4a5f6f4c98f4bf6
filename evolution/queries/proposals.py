"""Proposals: the list, and what a reviewer needs beside the diff."""

from dataclasses import dataclass
from typing import Any

from django.db.models import Case, IntegerField, QuerySet, Value, When

from evolution.models import DatasetCase, FailureCase, Harness, Proposal
from evolution.states import ProposalState

LIVE = (
    ProposalState.DRAFTED,
    ProposalState.DRAFTING,
    ProposalState.FAILED,
    ProposalState.CONFIRMED,
    ProposalState.IN_STEP,
)


@dataclass(frozen=True)
class NamedCase:
    """A case that a manifest names: a failure (with its page) or a dataset case (with its key only)."""

    pk: int
    title: str
    category: str
    is_failure: bool


def list_proposals(harness: Harness, state: str = "live") -> QuerySet[Proposal]:
    """Proposals, those that wait for review first. `state` is one of ProposalState, `live` or `all`."""
    proposals = Proposal.objects.filter(harness=harness).select_related("diagnosis__cluster", "step")
    proposals = proposals.defer("diagnosis__output", "diagnosis__evidence", "diagnosis__cluster__centroid")
    if state == "live":
        proposals = proposals.filter(state__in=LIVE)
    elif state != "all":
        proposals = proposals.filter(state=state)
    order = [When(state=state, then=Value(place)) for place, state in enumerate(LIVE)]
    return proposals.order_by(Case(*order, default=Value(len(LIVE)), output_field=IntegerField()), "-id")


def list_confirmed(harness: Harness) -> list[Proposal]:
    """Proposals that a step can be started from, oldest first."""
    proposals = Proposal.objects.filter(harness=harness, state=ProposalState.CONFIRMED)
    return list(
        proposals.select_related("diagnosis__cluster").defer("diagnosis__cluster__centroid").order_by("id")
    )


def name_cases(harness: Harness, references: list[Any]) -> list[NamedCase]:
    """The failures (by id) and dataset cases (by key) that a manifest names, in its order, without unknown ones."""
    ids = [reference for reference in references if isinstance(reference, int)]
    keys = [reference for reference in references if isinstance(reference, str)]
    found: dict[Any, NamedCase] = {}
    for case in FailureCase.objects.filter(harness=harness, pk__in=ids).only("id", "title", "category"):
        found[case.pk] = NamedCase(case.pk, case.title, case.category, is_failure=True)
    if keys:
        known = DatasetCase.objects.filter(version__dataset__harness=harness, key__in=keys)
        for pk, key, category in known.values_list("pk", "key", "category"):
            found.setdefault(key, NamedCase(pk, key, category, is_failure=False))
    return [found[reference] for reference in references if reference in found]
