"""Proposals: the list, and what a reviewer needs beside the diff."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from django.db.models import Case, IntegerField, QuerySet, Value, When

from evolution.loop.repositories import open_repository
from evolution.loop.same_changes import Repeat, compare, find_repeats
from evolution.loop.step_merges import StepConflict, find_conflict
from evolution.loop.steps import find_obstacle
from evolution.models import CaseResult, DatasetCase, FailureCase, Harness, Proposal
from evolution.states import ProposalState
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.repository import MAIN

# A step can take it, now or once it is confirmed.
OPEN = (ProposalState.DRAFTED, ProposalState.CONFIRMED)
# A merge check takes some milliseconds.
MOST_CHECKED = 30
# A diff that was not read yet takes some milliseconds, too.
MOST_COMPARED = 200
MOST_REPEATS = 5
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
    related = proposals.select_related("harness", "diagnosis__cluster")
    return list(related.defer("diagnosis__cluster__centroid").order_by("id"))


@dataclass(frozen=True)
class Offered:
    """An approved proposal as the form of a step offers it."""

    proposal: Proposal
    # why no step takes it, with the way out; empty where one does
    obstacle: str = ""
    # the older one of these, or of those in the step already, that it repeats
    repeat: Repeat | None = None

    @property
    def is_wanted(self) -> bool:
        """Whether it is ticked where nobody has chosen yet."""
        return not self.obstacle and self.repeat is None


def offer_confirmed(harness: Harness, inside: Sequence[Proposal] = ()) -> list[Offered]:
    """The approved proposals, oldest first, with what is to be known of each before it is put beside those `inside`."""
    confirmed = list_confirmed(harness)
    obstacles = {proposal.pk: _find_obstacle(harness, proposal) for proposal in confirmed}
    takeable = [proposal for proposal in confirmed if not obstacles[proposal.pk]]
    repeats = find_repeats([*inside, *takeable])
    return [
        Offered(proposal, obstacles[proposal.pk], repeats.get(proposal.pk) or _compare_with(proposal, inside))
        for proposal in confirmed
    ]


def _compare_with(proposal: Proposal, inside: Sequence[Proposal]) -> Repeat | None:
    """What is in a step comes first, even where it is the younger one."""
    return next((repeat for other in inside if (repeat := compare(proposal, other))), None)


def _find_obstacle(harness: Harness, proposal: Proposal) -> str:
    try:
        return find_obstacle(harness, proposal)
    except HarnessRepoError:
        # Starting the step will say.
        return ""


def list_repeats(proposal: Proposal) -> list[tuple[Proposal, Repeat]]:
    """The other living proposals that change the very same, or add the same rule, oldest first; the first few."""
    others = Proposal.objects.filter(harness=proposal.harness_id, state__in=(*OPEN, ProposalState.IN_STEP))
    others = others.exclude(pk=proposal.pk).exclude(head_commit="").select_related("harness")
    compared = ((other, compare(proposal, other)) for other in others.order_by("pk")[:MOST_COMPARED])
    return [(other, repeat) for other, repeat in compared if repeat is not None][:MOST_REPEATS]


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
