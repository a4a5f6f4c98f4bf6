"""Evolution steps: the list, what a decision rests on, and the decision."""

from collections.abc import Callable, Sequence

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import steps as step_actions
from evolution.actors import Actor, Role
from evolution.errors import LoopError
from evolution.loop.repositories import open_repository
from evolution.loop.steps import UNDECIDED, Rebuilt
from evolution.models import ConflictResolution, DatasetVersion, Evaluation, Harness, Proposal, Release, Step
from evolution.queries import comparison as comparison_queries
from evolution.queries import progress as progress_queries
from evolution.queries import proposals as proposal_queries
from evolution.queries import releases as release_queries
from evolution.queries import scores as score_queries
from evolution.queries import steps as step_queries
from evolution.queries.evaluations import find_newer_dataset
from evolution.queries.proposals import Offered
from evolution.queries.steps import MergeForecast
from evolution.states import EvaluationState, ProposalState, StepState
from harness_repo.git.conflicts import FileConflict
from harness_repo.git.errors import HarnessRepoError
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.decisions import describe_decision, list_choices, list_obstacles
from workbench.diff_page import DiffPage, show_diff
from workbench.flip_names import name_counts
from workbench.forms import DecisionForm, first_error
from workbench.proposal_parts import describe_halves
from workbench.rendering import answer_watch, refresh_when_done, render_page
from workbench.settled_view import view_settled
from workbench.step_notes import list_step_notes
from workbench.views.conflicts import read_ticked, ticked_query

CANCELLED = EvaluationState.CANCELLED
MEASURED = {EvaluationState.FINISHED, EvaluationState.PARTIAL}
DECISIONS: dict[str, Callable[[Actor, Step, str], object]] = {
    "promote": step_actions.promote_step,
    "revise": step_actions.revise_step,
    "roll_back": step_actions.roll_back_step,
    "stop": step_actions.stop_evolution,
}


@require_safe
def step_list(request: Request, harness: str) -> HttpResponse:
    """List steps, with the confirmed proposals that a new one can take, and whether those ticked fit together."""
    record = get_harness_for(request, harness)
    offered = proposal_queries.offer_confirmed(record)
    undecided = step_queries.undecided_step(record)
    chosen = _read_chosen(request, offered)
    # Only where the button to put them together is shown.
    forecast = step_queries.foresee_merge(record, [] if undecided else chosen)
    context = {
        "steps": step_queries.list_steps(record),
        "undecided": undecided,
        "offered": offered,
        "chosen": chosen,
        "is_checked": forecast.is_known,
        "conflict": forecast.conflict,
        "settled": step_queries.list_settled(record, forecast),
        "waiting": step_queries.list_waiting(record, forecast),
        "ticked": ticked_query(chosen),
    }
    return render_page(request, "steps.html", context, record)


def _read_chosen(request: Request, offered: Sequence[Offered]) -> list[Proposal]:
    """What is ticked: what was sent, else all that no other one makes superfluous; nothing that no step takes."""
    if "chosen" not in request.GET:
        return [each.proposal for each in offered if each.is_wanted]
    ticked = set(read_ticked(request.GET))
    return [each.proposal for each in offered if each.proposal.pk in ticked and not each.obstacle]


@require_POST
def start(request: Request, harness: str) -> HttpResponse:
    """Start a step from the proposals that were ticked; those that clash stay ticked, and the reason is said."""
    record = get_harness_for(request, harness)
    ids = read_ticked(request.POST)
    chosen = list(
        Proposal.objects.filter(harness=record, pk__in=ids, state=ProposalState.CONFIRMED).order_by("id")
    )
    taken = Step.objects.filter(harness=record, proposals__in=ids).order_by("-number").first()
    if not chosen and taken is not None:
        text = _("The proposals are in step %(number)d already.") % {"number": taken.number}
        messages.info(request, text)
        return redirect("step", record.name, taken.number)
    if not chosen:
        messages.error(request, _("Choose at least one approved proposal."))
        return redirect("steps", record.name)
    with told(request):
        _refuse_conflict(record, step_queries.foresee_merge(record, chosen))
        step = step_actions.start_step(actor_of(request), record, chosen)
        return redirect("step", record.name, step.number)
    return redirect(f"{reverse('steps', args=[record.name])}?{ticked_query(chosen)}")


def _refuse_conflict(harness: Harness, forecast: MergeForecast) -> None:
    conflict = forecast.conflict
    if conflict is None:
        return
    if waiting := step_queries.list_waiting(harness, forecast):
        paths = ", ".join(file.path for file, _resolution in waiting)
        raise LoopError(
            _("how %(paths)s was settled waits for somebody else to confirm it") % {"paths": paths}
        )
    number, before = conflict.proposal.pk, conflict.before
    if not before:
        raise LoopError(_("#%(number)d does not fit to the live version: leave it out") % {"number": number})
    others = ", ".join(f"#{proposal.pk}" for proposal in before)
    values = {"number": number, "others": others}
    raise LoopError(
        _("#%(number)d does not fit to %(others)s: leave it out, or what it clashes with") % values
    )


def _get(request: Request, harness: str, number: int) -> Step:
    related = ("harness", "verdict", "base_evaluation", "candidate_evaluation")
    return get_for(request, harness, Step.objects.select_related(*related), number=number)


@require_safe
def step_page(request: Request, harness: str, number: int) -> HttpResponse:
    """Show a step: proposals, evaluations in progress, verdict and flips, and the decision."""
    step = _get(request, harness, number)
    running = step.state == StepState.EVALUATING
    live = release_queries.live_release(step.harness)
    stamp = _stamp(step, live)
    if response := refresh_when_done(request, running=running) or answer_watch(request, stamp):
        return response
    choices = list_choices(step, actor_of(request))
    evaluations = [_measured(role, evaluation) for role, evaluation in _evaluations(step)]
    is_decided = step.state not in UNDECIDED
    context = {
        "step": step,
        "evaluations": evaluations,
        "is_running": running,
        "flips": _count_flips(step),
        "guards": step_queries.list_guards(step),
        "choices": choices,
        "obstacles": list_obstacles(choices),
        "stamp": stamp,
        "is_measured": _is_measured(step),
        "is_cancelled": any(evaluation.state == CANCELLED for _role, evaluation in _evaluations(step)),
        "base_moved": live is not None and live.commit != step.base_commit,
        "is_decided": is_decided,
        "newer_dataset": _find_newer_dataset(step),
        "measured": [] if evaluations or is_decided else step_queries.list_measured(step),
        "earlier": step_queries.list_earlier_builds(step),
        **describe_halves(step),
        **_describe_merge(request, step, live.commit if live else "", is_decided=is_decided),
    }
    return render_page(request, "step.html", context, step.harness)


def _find_newer_dataset(step: Step) -> DatasetVersion | None:
    """What the step is not measured on, while that can be made up for."""
    if step.candidate_evaluation is None or step.state not in UNDECIDED:
        return None
    return find_newer_dataset(step.candidate_evaluation)


def _describe_merge(request: Request, step: Step, live: str, *, is_decided: bool) -> dict[str, object]:
    """What the step is made of, what clashed in it or would now, and what it changes altogether."""
    proposals = step_queries.list_step_proposals(step)
    forecast = step_queries.foresee_merge(step.harness, [] if is_decided else proposals)
    settled = step_queries.list_settled(step.harness, forecast)
    diff, problem = _read_diff(request, step, settled)
    return {
        "proposals": proposals,
        "inside": step_queries.describe_proposals(proposals, live),
        "idle": set() if is_decided else step_queries.list_idle(step, proposals),
        "outside": [] if is_decided else proposal_queries.offer_confirmed(step.harness, proposals),
        "conflict": forecast.conflict,
        "settled": view_settled(settled, proposals, actor_of(request).name),
        "waiting": step_queries.list_waiting(step.harness, forecast),
        "ticked": ticked_query(proposals),
        "is_outdated": live == step.base_commit and step_queries.is_outdated(step, forecast),
        "diff": diff,
        "diff_problem": problem,
    }


def _read_diff(
    request: Request, step: Step, settled: Sequence[tuple[FileConflict, ConflictResolution]]
) -> tuple[DiffPage | None, str]:
    """The changes of the whole step, with what people settled said at its file; or why they can't be shown."""
    notes = list_step_notes(step, settled)
    address = reverse("step_file", args=[step.harness.name, step.number])
    try:
        repository = open_repository(step.harness)
        ends = (step.base_commit, step.candidate_commit)
        return show_diff(request, repository, *ends, address=address, notes=notes), ""
    except (HarnessRepoError, ValueError) as error:
        return None, str(error)


def _stamp(step: Step, live: Release | None) -> str:
    """What the page shows of the step and of what is live; another stamp means that it is out of date."""
    measured = (step.base_evaluation_id, step.candidate_evaluation_id, step.verdict_id)
    return "-".join(str(part) for part in (step.state, step.candidate_commit, *measured, live and live.pk))


def _is_measured(step: Step) -> bool:
    """Whether evaluating again would bring nothing: both sides are measured to the end, and comparable."""
    both = [evaluation for _role, evaluation in _evaluations(step)]
    finished = all(evaluation.state == EvaluationState.FINISHED for evaluation in both)
    return len(both) == len(("base", "candidate")) and finished and _is_comparable(step)


def _is_comparable(step: Step) -> bool:
    return step.verdict is not None and bool(step.verdict.figures.get("comparable", True))


def _evaluations(step: Step) -> list[tuple[str, Evaluation]]:
    both = [(_("base"), step.base_evaluation), (_("candidate"), step.candidate_evaluation)]
    return [(role, evaluation) for role, evaluation in both if evaluation is not None]


def _measured(role: str, evaluation: Evaluation) -> dict[str, object]:
    return {
        "role": role,
        "evaluation": evaluation,
        "progress": progress_queries.measure_progress(evaluation),
        "scores": score_queries.score_overall(evaluation),
    }


def _count_flips(step: Step) -> list[tuple[str, str, int]]:
    if not step.base_evaluation or not step.candidate_evaluation:
        return []
    if not {step.base_evaluation.state, step.candidate_evaluation.state} <= MEASURED:
        return []
    return name_counts(comparison_queries.compare(step.base_evaluation, step.candidate_evaluation).counts)


@require_POST
def evaluate(request: Request, harness: str, number: int) -> HttpResponse:
    """Evaluate the base and the candidate of a step."""
    step = _get(request, harness, number)
    with told(request):
        step_actions.evaluate_step(actor_of(request), step)
    return redirect("step", harness, number)


@require_POST
def decide(request: Request, harness: str, number: int) -> HttpResponse:
    """Promote, revise, roll back or stop."""
    step = _get(request, harness, number)
    form = DecisionForm(request.POST)
    if not form.is_valid():
        messages.error(request, first_error(form))
        return redirect("step", harness, number)
    decision, was_live = form.cleaned_data["decision"], step.state == StepState.PROMOTED
    with told(request):
        DECISIONS[decision](actor_of(request), step, form.cleaned_data["reason"].strip())
        # Built by format_html, so it can carry the link onward.
        text = describe_decision(step, decision, was_live=was_live)
        messages.success(request, text, extra_tags="onward")
    return redirect("step", harness, number)


@require_POST
def rebuild(request: Request, harness: str, number: int) -> HttpResponse:
    """Put the proposals of a step on what is live now, and merge them again."""
    step = _get(request, harness, number)
    with told(request):
        _tell(request, step_actions.rebuild_step(actor_of(request), step))
        messages.success(request, _("Rebuilt on the live version; evaluate it again."))
    return redirect("step", harness, number)


@require_POST
def take_out(request: Request, harness: str, number: int, pk: int) -> HttpResponse:
    """Take one proposal out of a step that is not decided; of one with a verdict, when that was agreed to."""
    step = _get(request, harness, number)
    proposal = get_for(request, harness, Proposal.objects.filter(step=step), pk=pk)
    with told(request):
        _require_consent(request, step)
        _tell(request, step_actions.take_out(actor_of(request), step, proposal))
        messages.success(request, _("Taken out of the step; evaluate it again."))
    return redirect("step", harness, number)


@require_POST
def put_in(request: Request, harness: str, number: int, pk: int) -> HttpResponse:
    """Add a confirmed proposal to a step that is not decided; where they clash, that is settled first.

    Into one with a verdict it goes when that was agreed to.
    """
    step = _get(request, harness, number)
    proposal = get_for(request, harness, Proposal.objects.select_related("harness", "step"), pk=pk)
    inside = list(step.proposals.select_related("harness", "step"))
    together = sorted({*inside, proposal}, key=lambda each: each.pk)
    with told(request):
        if step_queries.foresee_conflict(step.harness, together) is not None:
            actor_of(request).require(Role.DEVELOPER)
            messages.warning(request, _("They clash: settle that first, then put it in."))
            return redirect(f"{reverse('steps_conflicts', args=[harness])}?{ticked_query(together)}")
        _require_consent(request, step)
        _tell(request, step_actions.put_in(actor_of(request), step, proposal))
        messages.success(request, _("Put into the step; evaluate it again."))
    return redirect("step", harness, number)


def _require_consent(request: Request, step: Step) -> None:
    """Refuse whoever may not put steps together, and to drop a verdict of which their page did not speak."""
    actor_of(request).require(Role.DEVELOPER)
    if step.verdict_id is not None and "sure" not in request.POST:
        raise LoopError(
            _(
                "the step has a verdict, which goes when something else is in it: press the button again and agree"
            )
        )


def _tell(request: Request, rebuilt: Rebuilt) -> None:
    """Say which proposals are no longer in the step, and why."""
    for proposal in rebuilt.to_review:
        text = _(
            "#%(number)d left the step: on the live version its changes are others than those that were approved. "
            "Review it again."
        )
        messages.warning(request, text % {"number": proposal.pk})
