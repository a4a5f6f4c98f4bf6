"""Beside stage 4: which failures of a cluster a hypothesis explains, where others explain the rest.

The model says so of the cases that it was shown; of the others, those that are most like these.
"""

from collections.abc import Mapping

from evolution.loop.failure_text import describe_failure
from evolution.loop.sampling import character_pairs
from evolution.models import Diagnosis, FailureCase
from evolution.states import CaseState


def list_explained(diagnosis: Diagnosis) -> list[FailureCase]:
    """The open failures of the cluster that the diagnosis explains, by id.

    All of them, where its answer has no hypothesis that explains a case which it does not.
    """
    members = FailureCase.objects.filter(cluster_id=diagnosis.cluster_id, state=CaseState.OPEN)
    cases = list(members.select_related("dataset_case").order_by("pk"))
    mine, others = told_of(diagnosis), set[int]()
    if diagnosis.exchange_id is not None:
        for other in Diagnosis.objects.filter(exchange=diagnosis.exchange_id).exclude(pk=diagnosis.pk):
            others |= told_of(other)
    if not mine or not others - mine:
        return cases
    # What they quote may be dealt with by now; it says as before what a case of theirs is like.
    told = FailureCase.objects.filter(harness=diagnosis.harness_id, pk__in=mine | others)
    known = {case.pk: _pairs(case) for case in told.select_related("dataset_case")}
    return [case for case in cases if _nearest(case, known) in mine]


def told_of(diagnosis: Diagnosis) -> set[int]:
    """Ids of the failures that a hypothesis quotes, or says where they went wrong."""
    return {int(item["case"]) for item in [*diagnosis.evidence, *diagnosis.first_wrong_turns]}


def _nearest(case: FailureCase, known: Mapping[int, frozenset[str]]) -> int | None:
    """The case itself if it is known, else the known one that reads most like it."""
    if case.pk in known:
        return case.pk
    pairs = _pairs(case)
    return max(known, key=lambda pk: (_likeness(pairs, known[pk]), -pk), default=None)


def _pairs(case: FailureCase) -> frozenset[str]:
    return character_pairs(f"{case.title} {describe_failure(case) or case.reply}")


def _likeness(one: frozenset[str], other: frozenset[str]) -> float:
    return len(one & other) / len(one | other)
