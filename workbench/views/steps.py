"""Evolution steps: the list, what a decision rests on, and the decision."""

from collections.abc import Callable

from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import steps as step_actions
from evolution.actors import Actor
from evolution.models import Evaluation, Proposal, Step
from evolution.queries import comparison as comparison_queries
from evolution.queries import evaluations as evaluation_queries
from evolution.queries import proposals as proposal_queries
from evolution.queries import releases as release_queries
from evolution.queries import steps as step_queries
from evolution.states import ProposalState, StepState
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.decisions import list_choices
from workbench.flip_names import name_counts
from workbench.forms import DecisionForm, first_error
from workbench.rendering import refresh_when_done, render_page

DECISIONS: dict[str, Callable[[Actor, Step, str], object]] = {
    "promote": step_actions.promote_step,
    "revise": step_actions.revise_step,
    "roll_back": step_actions.roll_back_step,
    "stop": step_actions.stop_evolution,
}


@require_safe
def step_list(request: Request, harness: str) -> HttpResponse:
    """List steps, with the confirmed proposals that a new one can take."""
    record = get_harness_for(request, harness)
    context = {
        "steps": step_queries.list_steps(record),
        "confirmed": proposal_queries.list_confirmed(record),
    }
    return render_page(request, "steps.html", context, record)


@require_POST
def start(request: Request, harness: str) -> HttpResponse:
    """Start a step from the proposals that were ticked."""
    record = get_harness_for(request, harness)
    ids = [int(value) for value in request.POST.getlist("proposals") if value.isdigit()]
    chosen = list(
        Proposal.objects.filter(harness=record, pk__in=ids, state=ProposalState.CONFIRMED).order_by("id")
    )
    if not chosen:
        messages.error(request, _("Choose at least one confirmed proposal."))
        return redirect("steps", record.name)
    with told(request):
        step = step_actions.start_step(actor_of(request), record, chosen)
        return redirect("step", record.name, step.number)
    return redirect("steps", record.name)


def _get(request: Request, harness: str, number: int) -> Step:
    related = ("harness", "verdict", "base_evaluation", "candidate_evaluation")
    return get_for(request, harness, Step.objects.select_related(*related), number=number)


@require_safe
def step_page(request: Request, harness: str, number: int) -> HttpResponse:
    """Show a step: proposals, evaluations in progress, verdict and flips, and the decision."""
    step = _get(request, harness, number)
    running = step.state == StepState.EVALUATING
    if response := refresh_when_done(request, running=running):
        return response
    live = release_queries.live_release(step.harness)
    evaluations = [_measured(role, evaluation) for role, evaluation in _evaluations(step)]
    context = {
        "step": step,
        "proposals": step_queries.list_step_proposals(step),
        "evaluations": evaluations,
        "is_running": running,
        "flips": _count_flips(step),
        "choices": list_choices(step, actor_of(request)),
        "base_moved": live is not None and live.commit != step.base_commit,
        "is_decided": step.state not in {StepState.READY, StepState.EVALUATING, StepState.EVALUATED},
    }
    return render_page(request, "step.html", context, step.harness)


def _evaluations(step: Step) -> list[tuple[str, Evaluation]]:
    both = [(_("base"), step.base_evaluation), (_("candidate"), step.candidate_evaluation)]
    return [(role, evaluation) for role, evaluation in both if evaluation is not None]


def _measured(role: str, evaluation: Evaluation) -> dict[str, object]:
    return {
        "role": role,
        "evaluation": evaluation,
        "progress": evaluation_queries.measure_progress(evaluation),
        "scores": evaluation_queries.score_overall(evaluation),
    }


def _count_flips(step: Step) -> list[tuple[str, str, int]]:
    if step.state == StepState.EVALUATING or not step.base_evaluation or not step.candidate_evaluation:
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
    with told(request, _("Decided.")):
        action = DECISIONS[form.cleaned_data["decision"]]
        action(actor_of(request), step, form.cleaned_data["reason"].strip())
    return redirect("step", harness, number)


@require_POST
def rebuild(request: Request, harness: str, number: int) -> HttpResponse:
    """Merge the proposals of a step again, on what is live now."""
    step = _get(request, harness, number)
    with told(request, _("Rebuilt on the live version; evaluate it again.")):
        step_actions.rebuild_step(actor_of(request), step)
    return redirect("step", harness, number)


@require_POST
def take_out(request: Request, harness: str, number: int, pk: int) -> HttpResponse:
    """Take one proposal out of a step that is not decided."""
    step = _get(request, harness, number)
    proposal = get_for(request, harness, Proposal.objects.filter(step=step), pk=pk)
    with told(request, _("Taken out of the step; evaluate it again.")):
        step_actions.take_out(actor_of(request), step, proposal)
    return redirect("step", harness, number)
