"""The diagnoses of a cluster as the answers that they came in, and what people did with them."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db.models import Prefetch

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
    kept = [
        Answer(exchange, by_exchange.get(exchange.pk, []))
        for exchange in asked.defer("request", "replies").annotate(tries=count_replies())
    ]
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


@dataclass(frozen=True)
class ShownCase:
    """A failure that a diagnosis rests on, for people to choose."""

    case: FailureCase
    is_quoted: bool
    # as the newest version of its dataset has it
    place: DatasetCase | None = None


def list_shown_cases(diagnosis: Diagnosis, *, with_places: bool = False) -> list[ShownCase]:
    """The members that the model was shown, those that it quotes first; without those that have left the cluster."""
    quoted = [row["case"] for row in diagnosis.evidence if isinstance(row, dict) and "case" in row]
    shown = diagnosis.exchange.shown.get("cases", []) if diagnosis.exchange else []
    ids = [pk for pk in dict.fromkeys([*quoted, *shown]) if isinstance(pk, int)][:MOST_CASES]
    cases = FailureCase.objects.filter(cluster=diagnosis.cluster_id, pk__in=ids)
    known = {case.pk: case for case in cases.select_related("dataset_case__version__dataset")}
    chosen = [known[pk] for pk in ids if pk in known]
    return [
        ShownCase(
            case,
            case.pk in quoted,
            next(iter(list_dataset_places(case)), None) if with_places else None,
        )
        for case in chosen
    ]


def list_twins(diagnosis: Diagnosis) -> list[Proposal]:
    """Living drafts for other clusters whose diagnoses ask for the very same changes of the same file, oldest first."""
    if not diagnosis.path or not diagnosis.changes:
        return []
    proposals = Proposal.objects.filter(
        harness=diagnosis.harness_id, diagnosis__path=diagnosis.path, diagnosis__changes=diagnosis.changes
    )
    living = proposals.exclude(state__in=(ProposalState.REJECTED, ProposalState.FAILED))
    others = living.exclude(diagnosis__cluster=diagnosis.cluster_id).select_related("diagnosis__cluster")
    return list(others.defer("diagnosis__cluster__centroid", "diagnosis__output").order_by("pk")[:MOST_TWINS])
