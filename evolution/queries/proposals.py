"""Proposals: the list, and what a reviewer needs beside the diff."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, IntegerField, QuerySet, Value, When

from evolution.loop.repositories import open_repository
from evolution.loop.step_merges import StepConflict, find_conflict
from evolution.models import CaseResult, DatasetCase, FailureCase, Harness, Proposal
from evolution.states import ProposalState
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.repository import MAIN

# A step can take it, now or once it is confirmed.
OPEN = (ProposalState.DRAFTED, ProposalState.CONFIRMED)
# A merge check takes some milliseconds.
MOST_CHECKED = 30
LIVE = (
    ProposalState.DRAFTED,
    ProposalState.DRAFTING,
    ProposalState.FAILED,
    ProposalState.CONFIRMED,
    ProposalState.IN_STEP,
)


@dataclass(frozen=True)
class NamedCase:
    """A case that a manifest names: a failure (with its page) or a dataset case (with its key and newest result)."""

    pk: int
    title: str
    category: str
    is_failure: bool
    # of a dataset case: its first danmaku, and its newest result
    text: str = ""
    evaluation_id: int | None = None
    result_id: int | None = None


def list_proposals(harness: Harness, state: str = "live") -> QuerySet[Proposal]:
    """Proposals, those that wait for review first. `state` is one of ProposalState, `live` or `all`."""
    proposals = Proposal.objects.filter(harness=harness).select_related(
        "harness", "diagnosis__cluster", "step"
    )
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


def list_mergeable(harness: Harness, ids: Sequence[int]) -> list[Proposal]:
    """Those of the proposals that a step can take or has, in the order in which they are merged."""
    proposals = Proposal.objects.filter(
        harness=harness, pk__in=ids, state__in=[ProposalState.CONFIRMED, ProposalState.IN_STEP]
    )
    related = proposals.select_related("harness", "step", "diagnosis__cluster")
    return list(related.defer("diagnosis__cluster__centroid").order_by("id"))


@dataclass(frozen=True)
class MergeForecast:
    """Whether a proposal's branch can be merged on what is live now."""

    live: str
    # None: it can
    conflict: StepConflict | None


def foresee_merge(proposal: Proposal) -> MergeForecast | None:
    """The forecast of a proposal that a step can still take; None for others, and when git can't be asked."""
    if proposal.state not in OPEN or not proposal.head_commit:
        return None
    try:
        live = open_repository(proposal.harness).resolve(MAIN)
        return MergeForecast(live, find_conflict(proposal.harness, [proposal]))
    except HarnessRepoError:
        return None


def find_conflicting(proposals: Iterable[Proposal]) -> set[int]:
    """Ids of confirmed proposals that no longer merge with what is live; only the first MOST_CHECKED are looked at."""
    confirmed = [proposal for proposal in proposals if proposal.state == ProposalState.CONFIRMED]
    forecasts = {proposal.pk: foresee_merge(proposal) for proposal in confirmed[:MOST_CHECKED]}
    return {pk for pk, forecast in forecasts.items() if forecast and forecast.conflict}


def name_cases(harness: Harness, references: list[Any]) -> list[NamedCase]:
    """The failures (by id) and dataset cases (by key) that a manifest names, in its order, without unknown ones."""
    ids = [reference for reference in references if isinstance(reference, int)]
    keys = [reference for reference in references if isinstance(reference, str)]
    found: dict[Any, NamedCase] = {}
    for case in FailureCase.objects.filter(harness=harness, pk__in=ids).only("id", "title", "category"):
        found[case.pk] = NamedCase(case.pk, case.title, case.category, is_failure=True)
    if keys:
        known = DatasetCase.objects.filter(version__dataset__harness=harness, key__in=keys)
        results = _newest_results(harness, keys)
        for pk, key, category, text in known.values_list(
            "pk", "key", "category", "request__danmaku__0__text"
        ):
            named = NamedCase(pk, key, category, False, str(text or ""), *results.get(key, (None, None)))
            found.setdefault(key, named)
    return [found[reference] for reference in references if reference in found]


def _newest_results(harness: Harness, keys: list[str]) -> dict[str, tuple[int, int]]:
    """Evaluation and id of the newest result of each dataset case."""
    results = CaseResult.objects.filter(evaluation__harness=harness, case__key__in=keys, repeat=0)
    rows = results.order_by("pk").values_list("case__key", "evaluation_id", "pk")
    return {key: (evaluation_id, pk) for key, evaluation_id, pk in rows}
