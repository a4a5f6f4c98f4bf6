"""One evaluation, in progress or done: what it scored, spent and took, how it goes on, and its results."""

from django.conf import settings
from django.http import HttpResponse
from django.utils import timezone
from django.views.decorators.http import require_safe

from evolution.loop.evaluation import ACTIVE, describe_faults
from evolution.loop.figures import figures_of
from evolution.loop.rejudging import can_be_rejudged
from evolution.loop.runners import detail_runner
from evolution.models import Evaluation
from evolution.queries import evaluations as evaluation_queries
from evolution.queries import progress as progress_queries
from evolution.queries import results as result_queries
from evolution.queries import scores as score_queries
from evolution.queries.budgets import list_budget
from evolution.queries.stability import tabulate_stability
from evolution.queries.tallies import tally_results
from evolution.queries.usage import usage_of
from workbench.access import Request, get_for
from workbench.forms import ResultFilterForm
from workbench.rendering import refresh_when_done, render_page, wanted_part
from workbench.views.results import write_query

# Milliseconds between two looks at the progress; a large evaluation takes longer to add up, and to change.
POLL_MS, POLL_LARGE_MS = 1500, 4000
DETAILS_MS, DETAILS_LARGE_MS = 10_000, 30_000
LARGE = 5_000


def get_evaluation(request: Request, harness: str, pk: int) -> Evaluation:
    """Load an evaluation that the person may see, or answer 404."""
    related = Evaluation.objects.select_related("harness", "dataset_version__dataset", "base", "answers_from")
    return get_for(request, harness, related, pk=pk)


@require_safe
def evaluation_page(request: Request, harness: str, pk: int) -> HttpResponse:
    """Show how far an evaluation is and what it scored, with its results."""
    evaluation = get_evaluation(request, harness, pk)
    is_running = evaluation.state in ACTIVE
    if response := refresh_when_done(request, running=is_running):
        return response
    context: dict[str, object] = {"evaluation": evaluation, "is_running": is_running}
    context["details_ms"] = DETAILS_LARGE_MS if evaluation.total > LARGE else DETAILS_MS
    part = wanted_part(request)
    if part in ("", "progress"):
        context |= _live(evaluation)
    if part in ("", "details"):
        context |= _details(evaluation)
    if part in ("", "results"):
        context |= _results(request, evaluation)
    if not part:
        context |= _head(evaluation)
    return render_page(request, "evaluation.html", context, evaluation.harness)


def _live(evaluation: Evaluation) -> dict[str, object]:
    """What changes while workers are at it; asked for again and again, so it is all made of one pass."""
    now = timezone.now()
    tallies = tally_results(evaluation)
    used = usage_of(evaluation)
    progress = progress_queries.follow_tallies(evaluation, tallies, now)
    return {
        "progress": progress,
        "overall": score_queries.score_tallies(evaluation, tallies),
        "guard": score_queries.score_tallies(evaluation, tallies, is_guard=True),
        "under_way": progress_queries.count_under_way(evaluation) if progress.is_running else None,
        "still_since": progress_queries.stands_still_since(evaluation, now),
        "used": used,
        "spent": used.total,
        "budget": list_budget(evaluation, used.total),
        "taken": evaluation_queries.count_taken(evaluation),
        "poll_ms": POLL_LARGE_MS if evaluation.total > LARGE else POLL_MS,
    }


def _details(evaluation: Evaluation) -> dict[str, object]:
    """What is dearer to add up, and asked for now and then."""
    figures = figures_of([evaluation])[evaluation.pk]
    return {
        "categories": score_queries.score_categories(evaluation),
        "latencies": list(figures.latencies.items()),
        "cost": figures.cost,
        "stability": tabulate_stability(evaluation),
    }


def _results(request: Request, evaluation: Evaluation) -> dict[str, object]:
    wanted = ResultFilterForm(request.GET).wanted()
    return {
        "page": result_queries.list_results(evaluation, wanted, request.GET.get("page", 1)),
        "facets": result_queries.result_facets(evaluation),
        "wanted": wanted,
        "filter_query": write_query(wanted),
    }


def _head(evaluation: Evaluation) -> dict[str, object]:
    """Who was measured, under which faults, and what these did."""
    case_faults = result_queries.count_cases_with_faults(evaluation)
    return {
        "runner_detail": detail_runner(evaluation.runner) if evaluation.runner else "",
        "faults": describe_faults(evaluation.faults),
        "case_faults": case_faults,
        "struck": result_queries.count_struck(evaluation) if evaluation.faults or case_faults else None,
        "can_be_rejudged": can_be_rejudged(evaluation),
        "currency": settings.MODEL_CURRENCY,
        "rejudged": list(evaluation.rejudged.order_by("pk")),
        "candidates": list(evaluation.candidates.order_by("pk")[:20]),
    }
