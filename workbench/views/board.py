"""The board: where the harness stands, what waits for whom, and what to do next."""

from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.views.decorators.http import require_safe

from evolution.models import Evaluation, Harness
from evolution.queries import board as board_queries
from evolution.queries import clusters, events, releases, scores
from evolution.states import HarnessKind
from workbench.access import Request, get_harness_for
from workbench.charts import series_figure
from workbench.rendering import answer_watch, render_page
from workbench.views.events import link_events


@require_safe
def home(request: HttpRequest) -> HttpResponse:
    """Go to the first agent harness; without one say how to make one."""
    harness = Harness.objects.filter(kind=HarnessKind.AGENT).order_by("id").first()
    if harness is None:
        return render_page(request, "home.html", {})
    return redirect("board", harness.name)


@require_safe
def board(request: Request, harness: str) -> HttpResponse:
    """Show the series, the figures and the queues of a harness."""
    record = get_harness_for(request, harness)
    stamp = events.newest_event(record)
    if answer := answer_watch(request, stamp):
        return answer
    live = releases.live_release(record)
    measured = releases.live_evaluation(record)
    series = board_queries.series(record)
    live_commit = measured.commit if measured else ""
    next_action = board_queries.next_action(record)
    context = {
        "live": live,
        "series": series,
        "measured": Evaluation.objects.filter(pk__in=[point.evaluation_id for point in series]),
        # An axis without a point would say nothing; the table below says why.
        "figure": series_figure(series, live_commit) if any(map(_has_scores, series)) else None,
        "live_commit": live_commit,
        "live_evaluation": measured,
        "scores": scores.score_overall(measured) if measured else None,
        "stamp": stamp,
        "next_action": next_action,
        "next_url": _address(record, next_action) if next_action else "",
        "waiting": [(item, _address(record, item)) for item in board_queries.waiting(record)],
        "open_failures": clusters.count_open(record),
        "unclustered": clusters.count_unclustered(record),
        "events": link_events(record, events.recent_events(record)),
    }
    return render_page(request, "board.html", context, record)


def _has_scores(point: board_queries.SeriesPoint) -> bool:
    return point.accuracy is not None or point.effectiveness is not None


def _address(harness: Harness, item: board_queries.NextAction | board_queries.Waiting) -> str:
    return reverse(item.url_name, args=[harness.name, *item.args])
