"""Two evaluations case by case: what was fixed and broken, and one case side by side."""

from django.core.paginator import Paginator
from django.http import HttpResponse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from evolution.models import CaseResult, Evaluation
from evolution.queries import comparison as comparison_queries
from evolution.queries import evaluations as evaluation_queries
from workbench.access import Request, get_for, get_harness_for
from workbench.flip_names import name_counts
from workbench.rendering import render_page
from workbench.text_marks import mark_words

PAGE_SIZE = 100


@require_safe
def comparison(request: Request, harness: str) -> HttpResponse:
    """Compare two evaluations; with ?case= show that one side by side."""
    record = get_harness_for(request, harness)
    base, candidate = (_pick(request, harness, name) for name in ("base", "candidate"))
    context: dict[str, object] = {"base": base, "candidate": candidate}
    if base is None or candidate is None:
        context["pickers"] = [("base", _("Base")), ("candidate", _("Candidate"))]
        context["evaluations"] = evaluation_queries.list_evaluations(record)[:200]
    elif request.GET.get("case", "").isdigit():
        return render_page(
            request, "comparison_case.html", context | _side_by_side(request, base, candidate), record
        )
    else:
        context |= _flips(request, base, candidate)
    return render_page(request, "comparison.html", context, record)


def _pick(request: Request, harness: str, name: str) -> Evaluation | None:
    pk = request.GET.get(name, "")
    related = Evaluation.objects.select_related("dataset_version__dataset")
    return get_for(request, harness, related, pk=int(pk)) if pk.isdigit() else None


def _flips(request: Request, base: Evaluation, candidate: Evaluation) -> dict[str, object]:
    flip, category = request.GET.get("flip", ""), request.GET.get("category", "")
    compared = comparison_queries.compare(base, candidate, flip=flip, category=category)
    return {
        "comparison": compared,
        "page": Paginator(compared.rows, PAGE_SIZE).get_page(request.GET.get("page", 1)),
        "flips": name_counts(compared.counts),
        "total": sum(compared.counts.values()),
        "flip": flip,
        "category": category,
    }


def _side_by_side(request: Request, base: Evaluation, candidate: Evaluation) -> dict[str, object]:
    """Both results of a case (the first repeat, or the one asked for), with the words that changed marked."""
    repeat = request.GET.get("repeat", "0")
    key = {"case_id": int(request.GET["case"]), "repeat": int(repeat) if repeat.isdigit() else 0}
    results = CaseResult.objects.select_related("case").filter(evaluation__in=[base, candidate], **key)
    by_evaluation = {result.evaluation_id: result for result in results}
    before, after = by_evaluation.get(base.pk), by_evaluation.get(candidate.pk)
    old, new = mark_words(before.reply if before else "", after.reply if after else "")
    case = (before or after).case if before or after else None  # type: ignore[union-attr]
    return {"case": case, "sides": [(base, before, old), (candidate, after, new)]}
