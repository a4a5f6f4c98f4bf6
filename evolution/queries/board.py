"""The board: the series of measured versions, what waits for whom, and the one thing to do next."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from django.db.models import Count, Q
from django.utils.translation import gettext as _

from evolution.errors import LoopError
from evolution.loop.evaluation import ACTIVE
from evolution.loop.figures import NO_FIGURES, Figures, figures_of
from evolution.loop.mended import OPEN_CLUSTERS
from evolution.loop.promotion import SMALLEST_CLUSTER, advise, measured_scores, measured_versions
from evolution.loop.reasons import explain_reasons
from evolution.loop.steps import UNDECIDED
from evolution.loop.stopping import BASELINE
from evolution.models import Cluster, Event, Harness, Proposal
from evolution.queries.releases import live_evaluation, unreleased_main
from evolution.states import (
    CaseState,
    ClusterState,
    DiagnosisState,
    EvaluationState,
    ProposalState,
    StepState,
)

DEVELOPER, OPERATOR = "developer", "operator"


@dataclass(frozen=True)
class SeriesPoint:
    """A measured version; scores are means in percent, guard cases left out, None with too many errors."""

    commit: str
    label: str
    accuracy: float | None
    effectiveness: float | None
    # baseline, or the state of the step
    decision: str
    decision_label: str
    evaluation_id: int
    step_number: int | None
    # how much of what was to be measured has a score, 0-100
    coverage: float = 100.0
    figures: Figures = NO_FIGURES


@dataclass(frozen=True)
class NextAction:
    """What to do next, and the page to do it on."""

    text: str
    # of a URL within the harness, whose name comes before `args`
    url_name: str
    args: tuple[Any, ...] = ()


@dataclass(frozen=True)
class Waiting:
    """Something that waits for a decision, and the least role that can take it."""

    text: str
    who: str
    url_name: str
    args: tuple[Any, ...] = ()


def series(harness: Harness) -> list[SeriesPoint]:
    """The baseline and every measured step, in order."""
    points = []
    versions = measured_versions(harness)
    figures = figures_of(evaluation for evaluation, _step in versions)
    for evaluation, step in versions:
        accuracy, effectiveness = measured_scores(evaluation) or (None, None)
        points.append(
            SeriesPoint(
                commit=evaluation.commit,
                label=_("step %(number)d") % {"number": step.number} if step else _("baseline"),
                accuracy=accuracy,
                effectiveness=effectiveness,
                decision=step.state if step else BASELINE,
                decision_label=step.get_state_display() if step else _("baseline"),
                evaluation_id=evaluation.pk,
                step_number=step.number if step else None,
                coverage=100 * figures[evaluation.pk].scored / max(evaluation.total, 1),
                figures=figures[evaluation.pk],
            )
        )
    return points


def next_action(harness: Harness) -> NextAction | None:
    """The one step that brings the loop forward, the nearest to a release first; None when there is nothing."""
    questions: tuple[Callable[[Harness], NextAction | None], ...] = (
        _decide_step,
        _say_stopped,
        _watch_evaluation,
        _measure_live,
        _take_failures,
        _cluster_failures,
        _review_proposal,
        _start_step,
        _stop_early,
        _draft_edit,
        _diagnose_cluster,
    )
    found = (question(harness) for question in questions)
    return next((action for action in found if action is not None), None)


def waiting(harness: Harness) -> list[Waiting]:
    """Everything that waits for a person, by role."""
    return [
        *_unreleased(harness),
        *_undecided_steps(harness),
        *_unreviewed_proposals(harness),
        *_open_diagnoses(harness),
        *_unfinished_evaluations(harness),
    ]


def _undecided_steps(harness: Harness) -> list[Waiting]:
    return [
        Waiting(_("%(step)s: decide") % {"step": _step_name(step.number)}, OPERATOR, "step", (step.number,))
        for step in harness.steps.filter(state=StepState.EVALUATED)
    ]


def _unreviewed_proposals(harness: Harness) -> list[Waiting]:
    drafted = harness.proposals.filter(state=ProposalState.DRAFTED).select_related("diagnosis__cluster")
    text = _("Review: %(proposal)s")
    return [
        Waiting(text % {"proposal": _name_proposal(proposal)}, DEVELOPER, "proposal", (proposal.pk,))
        for proposal in drafted
    ]


def _open_diagnoses(harness: Harness) -> list[Waiting]:
    return [
        Waiting(
            _("Accept or reject diagnosis %(number)d: cluster %(cluster)d, %(name)s")
            % {"number": diagnosis.pk, "cluster": diagnosis.cluster.number, "name": diagnosis.cluster.name},
            DEVELOPER,
            "cluster",
            (diagnosis.cluster.number,),
        )
        for diagnosis in harness.diagnoses.filter(state=DiagnosisState.OPEN).select_related("cluster")
    ]


def _unfinished_evaluations(harness: Harness) -> list[Waiting]:
    """Those that ended with errors; what was made elsewhere can't be resumed here."""
    text = _("Evaluation %(number)d ended with errors: resume it")
    return [
        Waiting(text % {"number": pk}, DEVELOPER, "evaluation", (pk,))
        for pk in harness.evaluations.filter(state=EvaluationState.PARTIAL, origin={}).values_list(
            "pk", flat=True
        )
    ]


def _unreleased(harness: Harness) -> list[Waiting]:
    """Whether main is elsewhere than the newest release: a decision died half-way, or somebody pushed by hand."""
    commit = unreleased_main(harness)
    if not commit:
        return []
    text = _(
        "Main is at %(commit)s, which no release names: repeat the decision that was cut off, or roll back to a "
        "release"
    )
    return [Waiting(text % {"commit": commit[:8]}, OPERATOR, "releases")]


def _step_name(number: int) -> str:
    return _("step %(number)d") % {"number": number}


def _name_proposal(proposal: Proposal) -> str:
    """A proposal told apart from others with the same title: by its number, and its cluster's."""
    values: dict[str, Any] = {"number": proposal.pk, "title": proposal.title}
    if proposal.diagnosis is None:
        return _("proposal %(number)d, %(title)s") % values
    values["cluster"] = proposal.diagnosis.cluster.number
    return _("proposal %(number)d of cluster %(cluster)d, %(title)s") % values


def _decide_step(harness: Harness) -> NextAction | None:
    step = harness.steps.filter(state__in=UNDECIDED).select_related("verdict").first()
    if step is None:
        return None
    texts = {
        StepState.READY: _("Evaluate step %(number)d against what is live."),
        StepState.EVALUATING: _("Step %(number)d is being evaluated."),
        StepState.EVALUATED: _("Decide step %(number)d; the verdict is: %(outcome)s."),
    }
    outcome = step.verdict.get_outcome_display() if step.verdict else ""
    text = texts[StepState(step.state)] % {"number": step.number, "outcome": outcome}
    return NextAction(text, "step", (step.number,))


def _say_stopped(harness: Harness) -> NextAction | None:
    if harness.stopped_at is None:
        return None
    values = {"commit": harness.selected_commit[:8]}
    return NextAction(
        _("The evolution is stopped; %(commit)s was selected. A new step starts it again.") % values, "steps"
    )


def _watch_evaluation(harness: Harness) -> NextAction | None:
    evaluation = harness.evaluations.filter(state__in=ACTIVE).first()
    if evaluation is None:
        return None
    return NextAction(
        _("Evaluation %(number)d is running.") % {"number": evaluation.pk}, "evaluation", (evaluation.pk,)
    )


def _measure_live(harness: Harness) -> NextAction | None:
    # What holds results made elsewhere has neither a judge nor an agent to measure.
    if not harness.datasets.exists() or harness.judge_id is None or live_evaluation(harness) is not None:
        return None
    return NextAction(_("Measure what is live: the series starts from there."), "evaluations")


def _take_failures(harness: Harness) -> NextAction | None:
    evaluation = live_evaluation(harness)
    if evaluation is None:
        return None
    taken = Event.objects.filter(
        verb="evaluation.failures_taken", target_kind="evaluation", target_id=evaluation.pk
    )
    has_failures = evaluation.results.filter(Q(accuracy__lt=1) | Q(effectiveness__lt=1)).exists()
    if taken.exists() or not has_failures:
        return None
    return NextAction(
        _("Take the failures of the live version into the inbox."), "evaluation", (evaluation.pk,)
    )


def _cluster_failures(harness: Harness) -> NextAction | None:
    # Clustering leaves the text it embedded on a case, so a case without one is new to it.
    new = harness.failures.filter(state=CaseState.OPEN, embedded_text="").count()
    return (
        NextAction(_("Cluster the failures; new ones: %(count)d.") % {"count": new}, "clusters")
        if new
        else None
    )


def _review_proposal(harness: Harness) -> NextAction | None:
    drafted = harness.proposals.filter(state=ProposalState.DRAFTED).select_related("diagnosis__cluster")
    proposal = drafted.order_by("pk").first()
    if proposal is None:
        return None
    text = _("Review: %(proposal)s") % {"proposal": _name_proposal(proposal)}
    return NextAction(text, "proposal", (proposal.pk,))


def _start_step(harness: Harness) -> NextAction | None:
    confirmed = harness.proposals.filter(state=ProposalState.CONFIRMED).count()
    if not confirmed:
        return None
    return NextAction(_("Start a step; approved proposals: %(count)d.") % {"count": confirmed}, "steps")


def _stop_early(harness: Harness) -> NextAction | None:
    newest = harness.steps.first()
    if newest is None:
        return None
    try:
        advice = advise(harness)
    except LoopError:
        # Nothing that was live is measured.
        return None
    if not advice.stop:
        return None
    why = "; ".join(explain_reasons(reason.to_dict() for reason in advice.reasons))
    return NextAction(_("Consider stopping: %(why)s.") % {"why": why}, "step", (newest.number,))


def _draft_edit(harness: Harness) -> NextAction | None:
    live = (ProposalState.DRAFTING, ProposalState.DRAFTED, ProposalState.CONFIRMED, ProposalState.IN_STEP)
    diagnosis = (
        harness.diagnoses.filter(state=DiagnosisState.OPEN, cluster__state=ClusterState.DIAGNOSED)
        .exclude(proposals__state__in=live)
        .select_related("cluster")
        .first()
    )
    if diagnosis is None:
        return None
    text = _("Draft an edit for the diagnosis of %(cluster)s, or reject it.") % {
        "cluster": diagnosis.cluster.name
    }
    return NextAction(text, "cluster", (diagnosis.cluster.number,))


def _diagnose_cluster(harness: Harness) -> NextAction | None:
    cluster = _largest_undiagnosed(harness)
    if cluster is None:
        return None
    return NextAction(
        _("Diagnose the cluster %(cluster)s.") % {"cluster": cluster.name}, "cluster", (cluster.number,)
    )


def _largest_undiagnosed(harness: Harness) -> Cluster | None:
    undiagnosed = [
        state for state in OPEN_CLUSTERS if state not in {ClusterState.DIAGNOSED, ClusterState.IN_PROGRESS}
    ]
    # A cluster whose diagnoses were all rejected is as it was before them.
    standing = harness.diagnoses.exclude(state=DiagnosisState.REJECTED).values("cluster")
    wanting = Q(state__in=undiagnosed) | Q(state=ClusterState.DIAGNOSED) & ~Q(pk__in=standing)
    size = Count("members", filter=Q(members__state=CaseState.OPEN))
    clusters = harness.clusters.filter(wanting).annotate(size=size)
    return clusters.filter(size__gte=SMALLEST_CLUSTER).order_by("-size", "number").first()
