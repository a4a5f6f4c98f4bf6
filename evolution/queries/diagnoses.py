"""The diagnoses of a cluster as the answers that they came in, and what people did with them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import or_
from typing import Any

from django.db.models import Prefetch, Q

from evolution.models import Cluster, DatasetCase, Diagnosis, Event, Exchange, FailureCase, Proposal
from evolution.queries.case_page import list_dataset_places
from evolution.queries.exchanges import count_replies
from evolution.states import DiagnosisState, ExchangePurpose, ProposalState

# The verbs of what people decide about a diagnosis.
DECISIONS = ("diagnosis.accepted", "diagnosis.rejected", "diagnosis.handled")
# Cases that people choose from.
MOST_CASES = 40
# Proposals that are told to be the same.
MOST_TWINS = 5


@dataclass(frozen=True)
class Answer:
    """What the diagnoser said when it was asked once: hypotheses, the likeliest first; none where it failed."""

    # None where it was not kept
    exchange: Exchange | None
    diagnoses: list[Diagnosis] = field(default_factory=list)

    @property
    def shown(self) -> dict[str, Any]:
        """What the model was shown: see models.Exchange."""
        return self.exchange.shown if self.exchange else {}

    @property
    def is_rejected(self) -> bool:
        """Whether nothing of it stands."""
        return all(diagnosis.state == DiagnosisState.REJECTED for diagnosis in self.diagnoses)


def list_answers(cluster: Cluster) -> list[Answer]:
    """All answers about a cluster, newest first; with those that nothing came of."""
    proposals = Proposal.objects.select_related("step").order_by("-id")
    diagnoses = cluster.diagnoses.order_by("rank", "-id").prefetch_related(Prefetch("proposals", proposals))
    by_exchange: dict[int, list[Diagnosis]] = {}
    unkept: list[Answer] = []
    for diagnosis in diagnoses:
        if diagnosis.exchange_id is None:
            unkept.append(Answer(None, [diagnosis]))
        else:
            by_exchange.setdefault(diagnosis.exchange_id, []).append(diagnosis)
    asked = cluster.exchanges.filter(purpose=ExchangePurpose.DIAGNOSIS) | Exchange.objects.filter(
        pk__in=by_exchange
    )
    exchanges = asked.select_related("harness").defer("request", "replies").annotate(tries=count_replies())
    kept = [Answer(exchange, by_exchange.get(exchange.pk, [])) for exchange in exchanges]
    for answer in kept:
        for diagnosis in answer.diagnoses:
            diagnosis.exchange = answer.exchange
    return sorted([*kept, *unkept], key=_moment, reverse=True)


def _moment(answer: Answer) -> Any:
    return answer.exchange.created_at if answer.exchange else answer.diagnoses[0].created_at


def list_standing(answers: Iterable[Answer]) -> list[Diagnosis]:
    """The diagnoses that are not rejected, the best of the newest answer first."""
    every = [diagnosis for answer in answers for diagnosis in answer.diagnoses]
    return [diagnosis for diagnosis in every if diagnosis.state != DiagnosisState.REJECTED]


def list_decisions(answers: Iterable[Answer]) -> dict[int, Event]:
    """Who accepted, rejected or dealt with each diagnosis last, and why, by its id."""
    ids = [diagnosis.pk for answer in answers for diagnosis in answer.diagnoses]
    events = Event.objects.filter(verb__in=DECISIONS, target_kind="diagnosis", target_id__in=ids)
    found: dict[int, Event] = {}
    for event in events.order_by("id"):
        before = found.get(event.target_id)
        # Dealing with one accepts it at the same time: what was done says more.
        if before is None or not (before.verb == "diagnosis.handled" and event.verb == "diagnosis.accepted"):
            found[event.target_id] = event
    return found


def find_handled(diagnosis: Diagnosis) -> tuple[list[int], list[DatasetCase]]:
    """The failures that were dealt with last, and what became of them in the newest versions of their datasets."""
    event = Event.objects.filter(
        verb="diagnosis.handled", target_kind="diagnosis", target_id=diagnosis.pk
    ).last()
    ids: list[int] = event.data["cases"] if event else []
    cases = (
        FailureCase.objects.filter(pk__in=ids).select_related("dataset_case__version__dataset").order_by("pk")
    )
    placed = [place for case in cases for place in list_dataset_places(case)]
    return ids, placed


@dataclass(frozen=True)
class ShownCase:
    """A failure that a diagnosis rests on, for people to choose."""

    case: FailureCase
    is_quoted: bool
    # as the newest version of its dataset has it
    place: DatasetCase | None = None


def list_shown_cases(diagnosis: Diagnosis, *, with_places: bool = False) -> list[ShownCase]:
    """The members that the model was shown, those that it quotes first; without those that have left the cluster."""
    shown = list_shown_cases_of([diagnosis])[diagnosis.pk]
    if not with_places:
        return shown
    places = _find_places([each.case for each in shown])
    return [replace(each, place=places.get(each.case.pk)) for each in shown]


def list_shown_cases_of(diagnoses: Sequence[Diagnosis]) -> dict[int, list[ShownCase]]:
    """The same for diagnoses of one cluster, by their ids; without places."""
    ids = {each.pk: _choose_ids(each) for each in diagnoses}
    cases = FailureCase.objects.filter(
        cluster__in={each.cluster_id for each in diagnoses},
        pk__in={pk for some in ids.values() for pk in some},
    )
    known = {case.pk: case for case in cases.select_related("dataset_case__version__dataset")}
    return {
        each.pk: [ShownCase(known[pk], pk in _list_quoted(each)) for pk in ids[each.pk] if pk in known]
        for each in diagnoses
    }


def _list_quoted(diagnosis: Diagnosis) -> list[Any]:
    return [row["case"] for row in diagnosis.evidence if isinstance(row, dict) and "case" in row]


def _choose_ids(diagnosis: Diagnosis) -> list[int]:
    shown = diagnosis.exchange.shown.get("cases") if diagnosis.exchange else []
    ids = [pk for pk in [*_list_quoted(diagnosis), *(shown or [])] if isinstance(pk, int)]
    return list(dict.fromkeys(ids))[:MOST_CASES]


def _find_places(cases: Sequence[FailureCase]) -> dict[int, DatasetCase]:
    """The dataset case that each is tied to, as the newest version of its dataset has it, by the failure's id."""
    tied = {case.pk: case.dataset_case for case in cases if case.dataset_case is not None}
    found = DatasetCase.objects.filter(
        version__dataset__in={place.version.dataset_id for place in tied.values()},
        key__in={place.key for place in tied.values()},
    )
    newest = found.order_by("version__dataset", "key", "-version__number").distinct("version__dataset", "key")
    by_key = {
        (place.version.dataset_id, place.key): place for place in newest.select_related("version__dataset")
    }
    return {pk: by_key[place.version.dataset_id, place.key] for pk, place in tied.items()}


def list_twins(diagnosis: Diagnosis) -> list[Proposal]:
    """Living drafts for other clusters whose diagnoses ask for the very same changes of the same file, oldest first."""
    return list_twins_of([diagnosis])[diagnosis.pk]


def list_twins_of(diagnoses: Sequence[Diagnosis]) -> dict[int, list[Proposal]]:
    """The same for several diagnoses, by their ids."""
    asking = [each for each in diagnoses if each.path and each.changes]
    same = [Q(diagnosis__path=each.path, diagnosis__changes=each.changes) for each in asking]
    if not same:
        return {each.pk: [] for each in diagnoses}
    proposals = Proposal.objects.filter(reduce(or_, same), harness__in={each.harness_id for each in asking})
    living = proposals.exclude(state__in=(ProposalState.REJECTED, ProposalState.FAILED))
    related = living.select_related("diagnosis__cluster")
    found = list(related.defer("diagnosis__cluster__centroid", "diagnosis__output").order_by("pk"))
    return {
        each.pk: [proposal for proposal in found if each in asking and _is_twin(proposal, each)][:MOST_TWINS]
        for each in diagnoses
    }


def _is_twin(proposal: Proposal, diagnosis: Diagnosis) -> bool:
    other = proposal.diagnosis
    if other is None or other.cluster_id == diagnosis.cluster_id:
        return False
    return (other.harness_id, other.path, other.changes) == (
        diagnosis.harness_id,
        diagnosis.path,
        diagnosis.changes,
    )
