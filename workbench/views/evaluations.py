"""Evaluations: the list with a form to start one, and the buttons of one; its page is in evaluation_page."""

from typing import Any

from django.conf import settings
from django.contrib import messages
from django.http import HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import cases as case_actions
from evolution.actions import evaluations as evaluation_actions
from evolution.actors import Role
from evolution.errors import LoopError
from evolution.loop.estimates import Estimate
from evolution.loop.repositories import open_repository
from evolution.models import Harness
from evolution.queries import evaluations as evaluation_queries
from evolution.queries.estimates import estimate_evaluation
from evolution.tasks.evaluations import count_cases_at_once
from harness_repo.git.errors import HarnessRepoError
from harness_repo.git.repository import MAIN
from harness_repo.runtime.faults import KINDS
from workbench.access import Request, actor_of, get_harness_for, told
from workbench.forms import BudgetForm, EvaluationForm, JudgeForm, read_form
from workbench.parameters import read_number
from workbench.rendering import render_page, wanted_part
from workbench.views.evaluation_page import get_evaluation


@require_safe
def evaluation_list(request: Request, harness: str) -> HttpResponse:
    """List evaluations, newest first."""
    record = get_harness_for(request, harness)
    return _render_list(request, record, EvaluationForm(record))


def _render_list(request: Request, record: Harness, form: EvaluationForm, **more: Any) -> HttpResponse:
    context = {"form": form, **more}
    if wanted_part(request) != "estimate":
        page = evaluation_queries.page_evaluations(record, request.GET.get("page", 1))
        context |= {
            "page": page,
            "rows": evaluation_queries.describe_evaluations(page.object_list),
            "versions": evaluation_queries.list_dataset_versions(record),
            "fault_kinds": KINDS,
            "default_concurrency": _default_concurrency(),
            "currency": settings.MODEL_CURRENCY,
        }
    return render_page(request, "evaluations.html", context, record)


def _default_concurrency() -> int | None:
    """Cases at once where the form names no number; None while the settings of endpoints can't be read."""
    try:
        return count_cases_at_once()
    except LoopError:
        return None


@require_POST
def start(request: Request, harness: str) -> HttpResponse:
    """Evaluate a version of the harness; a refused form keeps what was entered."""
    record = get_harness_for(request, harness)
    form = EvaluationForm(record, request.POST)
    if form.is_valid() and (commit := _resolve(record, form, "ref")) and _resolve_base(record, form):
        with told(request):
            evaluation = evaluation_actions.start_evaluation(
                actor_of(request), record, commit, form.cleaned_data["dataset_version"], **form.options()
            )
            return redirect("evaluation", record.name, evaluation.pk)
    return _render_list(request, record, form)


@require_POST
def estimate(request: Request, harness: str) -> HttpResponse:
    """Say what the evaluation of the form would take, and start nothing; that takes a second or two."""
    record = get_harness_for(request, harness)
    with told(request):
        actor_of(request).require(Role.DEVELOPER)
    form = EvaluationForm(record, request.POST)
    try:
        found, problem = _estimate(record, read_form(form), form.options()), ""
    except (LoopError, HarnessRepoError) as failure:
        found, problem = [], str(failure)
    return _render_list(request, record, form, estimates=found, problem=problem)


def _estimate(record: Harness, fields: dict[str, Any], options: dict[str, Any]) -> list[tuple[str, Estimate]]:
    """Of the version, and of the base if there is to be one; what there is of that is taken."""
    known = {name: options[name] for name in ("splits", "repeats", "faults") if name in options}
    version, is_fresh = fields["dataset_version"], options.get("is_fresh", False)
    found = [("candidate", estimate_evaluation(record, fields["ref"], version, **known, is_fresh=is_fresh))]
    if fields["base"]:
        found.append(("base", estimate_evaluation(record, fields["base"], version, **known)))
    return found


def _resolve(record: Harness, form: EvaluationForm, field: str) -> str:
    """The commit of the version that a field asks for; else empty, with the error at the field."""
    try:
        return open_repository(record).resolve(form.cleaned_data[field])
    except HarnessRepoError as failure:
        form.add_error(field, str(failure))
        return ""


def _resolve_base(record: Harness, form: EvaluationForm) -> bool:
    """Whether the version to compare with is there, or none is wanted."""
    return not form.cleaned_data["base"] or bool(_resolve(record, form, "base"))


@require_POST
def cancel(request: Request, harness: str, pk: int) -> HttpResponse:
    """Stop an evaluation; what is measured stays."""
    evaluation = get_evaluation(request, harness, pk)
    with told(request, _("The evaluation is cancelled; it can be resumed.")):
        evaluation_actions.cancel_evaluation(actor_of(request), evaluation)
    step, proposal = (read_number(request.POST.get(name, "")) for name in ("step", "proposal"))
    if proposal is not None:
        return redirect("proposal", harness, proposal)
    return redirect("evaluation", harness, pk) if step is None else redirect("step", harness, step)


@require_POST
def resume(request: Request, harness: str, pk: int) -> HttpResponse:
    """Go on with an evaluation: only what is missing is made, within another budget if one is given."""
    evaluation = get_evaluation(request, harness, pk)
    with told(request):
        form = BudgetForm(request.POST)
        read_form(form)
        # The button without fields says nothing of one.
        budget = form.budget() if "budget" in request.POST else None
        evaluation_actions.resume_evaluation(actor_of(request), evaluation, budget=budget)
    return redirect("evaluation", harness, pk)


@require_POST
def rejudge(request: Request, harness: str, pk: int) -> HttpResponse:
    """Have the answers of an evaluation judged by another version of the judge; the agent is not run."""
    evaluation = get_evaluation(request, harness, pk)
    with told(request):
        form = JudgeForm(request.POST)
        judge_ref = read_form(form)["judge_ref"] or MAIN
        judged = evaluation_actions.rejudge_evaluation(
            actor_of(request), evaluation, judge_ref, budget=form.budget() or None
        )
        return redirect("evaluation", harness, judged.pk)
    return redirect("evaluation", harness, pk)


@require_POST
def take_failures(request: Request, harness: str, pk: int) -> HttpResponse:
    """Take the failures of an evaluation into the inbox."""
    evaluation = get_evaluation(request, harness, pk)
    with told(request):
        taken = case_actions.take_failures(actor_of(request), evaluation)
        text = ngettext(
            "%(n)d new failure taken into the inbox.", "%(n)d new failures taken into the inbox.", taken
        )
        messages.success(request, text % {"n": taken})
    return redirect("evaluation", harness, pk)
