"""Two evaluations case by case: what was fixed and broken, and one case side by side."""

from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

from django.contrib import messages
from django.core.paginator import Paginator
from django.http import HttpResponse
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from evolution.loop.evaluation import describe_faults
from evolution.models import CaseResult, DatasetCase, Evaluation, Harness
from evolution.queries import compared_figures as figure_queries
from evolution.queries import comparison as comparison_queries
from evolution.queries import evaluations as evaluation_queries
from workbench.access import Request, get_for, get_harness_for
from workbench.flip_names import name_counts
from workbench.parameters import read_number
from workbench.proposal_parts import describe_compared_halves
from workbench.rendering import render_page
from workbench.text_marks import mark_words, reveal

PAGE_SIZE = 100
# What ?flip= says for all cases; without it they are the flipped ones.
EVERY = "all"


@dataclass(frozen=True)
class Side:
    """One of two results of a case."""

    evaluation: Evaluation
    result: CaseResult | None
    # With the words marked that the other side has otherwise.
    reply: SafeString
    # The same of a conversation, line by line; empty for a single reply.
    exchanges: list[dict[str, Any]]
    # What the evaluation injected into tool calls, as a command line has it.
    faults: str


@require_safe
def comparison(request: Request, harness: str) -> HttpResponse:
    """Compare two evaluations; with ?case= show that one side by side."""
    record = get_harness_for(request, harness)
    base, candidate = (_pick(request, harness, name) for name in ("base", "candidate"))
    context: dict[str, object] = {"base": base, "candidate": candidate}
    if base is None or candidate is None or base == candidate:
        context |= _offer(request, record, base, candidate)
    elif (case := read_number(request.GET.get("case", ""))) is not None:
        context |= _side_by_side(request, base, candidate, case)
        return render_page(request, "comparison_case.html", context, record)
    else:
        context |= _flips(request, base, candidate)
    return render_page(request, "comparison.html", context, record)


def _pick(request: Request, harness: str, name: str) -> Evaluation | None:
    pk = read_number(request.GET.get(name, ""))
    related = Evaluation.objects.select_related("harness", "dataset_version__dataset")
    return None if pk is None else get_for(request, harness, related, pk=pk)


def _offer(
    request: Request, harness: Harness, base: Evaluation | None, candidate: Evaluation | None
) -> dict[str, object]:
    """What to choose from, the newest evaluation against the one before it unless one is chosen already."""
    if request.GET:
        messages.warning(request, _("Choose two different evaluations: a base and a candidate."))
    offered = list(evaluation_queries.list_evaluations(harness)[:200])
    newest = candidate if candidate and candidate != base else next((e for e in offered if e != base), None)
    other = base or next((e for e in offered if e != newest), None)
    return {
        "evaluations": offered,
        "pickers": [
            ("base", _("Base"), other.pk if other else None),
            ("candidate", _("Candidate"), newest.pk if newest else None),
        ],
    }


def _filters(request: Request) -> dict[str, str]:
    """Which rows are wanted: those that flipped, unless the address says otherwise."""
    flip = request.GET.get("flip", comparison_queries.FLIPPED)
    return {"flip": "" if flip == EVERY else flip, "category": request.GET.get("category", "")}


def _flips(request: Request, base: Evaluation, candidate: Evaluation) -> dict[str, object]:
    filters = _filters(request)
    compared = comparison_queries.compare(base, candidate, **filters)
    counts = compared.counts
    is_asked = request.GET.get("figures") == "1"
    return {
        "figures": figure_queries.compare_figures(base, candidate, is_asked=is_asked),
        "comparison": compared,
        "page": Paginator(compared.rows, PAGE_SIZE).get_page(request.GET.get("page", 1)),
        "flips": name_counts(counts),
        "total": sum(counts.values()),
        "flipped": counts.get("fixed", 0) + counts.get("broken", 0),
        "step": comparison_queries.step_between(base, candidate),
        **describe_compared_halves(base, candidate),
        **filters,
    }


def _side_by_side(
    request: Request, base: Evaluation, candidate: Evaluation, case_id: int
) -> dict[str, object]:
    """Both results of a case (the first repeat, or the one asked for), with the words that changed marked."""
    repeat = read_number(request.GET.get("repeat", "")) or 0
    both = CaseResult.objects.select_related("case").filter(evaluation__in=[base, candidate])
    # By its key: another version of the dataset has a row of its own for the case.
    keys = DatasetCase.objects.filter(pk=case_id, version__dataset__harness=base.harness_id).values("key")
    results = both.filter(case__key__in=keys, repeat=repeat)
    by_evaluation = {result.evaluation_id: result for result in results}
    before, after = by_evaluation.get(base.pk), by_evaluation.get(candidate.pk)
    case = (before or after).case if before or after else None  # type: ignore[union-attr]
    return {
        "case": case,
        "case_faults": describe_faults(case.faults) if case else "",
        "sides": _sides(base, candidate, before, after),
        "step": comparison_queries.step_between(base, candidate),
        **_neighbours(request, base, candidate, case_id),
    }


def _sides(
    base: Evaluation, candidate: Evaluation, before: CaseResult | None, after: CaseResult | None
) -> list[Side]:
    old, new = mark_words(before.reply if before else "", after.reply if after else "")
    nothing: dict[str, Any] = {}
    pairs = zip_longest(_exchanges(before), _exchanges(after), fillvalue=nothing)
    marked = [_mark_exchange(was, now) for was, now in pairs]
    return [
        Side(base, before, old, [was for was, _now in marked if was], describe_faults(base.faults)),
        Side(candidate, after, new, [now for _was, now in marked if now], describe_faults(candidate.faults)),
    ]


def _exchanges(result: CaseResult | None) -> list[dict[str, Any]]:
    found = result.trajectory.get("conversation") if result else None
    return [entry for entry in found if isinstance(entry, dict)] if isinstance(found, list) else []


def _mark_exchange(was: dict[str, Any], now: dict[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Both as HTML, with the words marked that changed from the one to the other."""
    for name in ("user", "reply"):
        old, new = was.get(name), now.get(name)
        if old is not None and new is not None:
            old, new = mark_words(str(old), str(new))
        was, now = _replace(was, name, old), _replace(now, name, new)
    return was, now


def _replace(exchange: dict[str, Any], name: str, text: object) -> dict[str, Any]:
    """The exchange with that text as HTML; nothing stays nothing."""
    if text is None:
        return exchange
    return {**exchange, name: text if isinstance(text, SafeString) else reveal(text)}


def _neighbours(request: Request, base: Evaluation, candidate: Evaluation, case_id: int) -> dict[str, object]:
    """The cases before and after this one among those that the list was filtered to."""
    ids = [row.case_id for row in comparison_queries.compare(base, candidate, **_filters(request)).rows]
    if case_id not in ids:
        return {"previous": None, "next": None}
    place = ids.index(case_id)
    return {
        "previous": ids[place - 1] if place else None,
        "next": ids[place + 1] if place + 1 < len(ids) else None,
        "place": place + 1,
        "among": len(ids),
    }
