"""Adding failures to a dataset: the form for one or for many, and what came of it."""

from typing import Any

from django.contrib import messages
from django.db.models import Count, QuerySet
from django.http import HttpResponse
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_POST, require_safe

from evolution.actions.dataset_cases import MOST_CASES, AddedCases, add_to_dataset, suggest_key
from evolution.actors import Role
from evolution.errors import LoopError
from evolution.loop.blame import find_blame
from evolution.loop.dataset_cases import has_question, propose_request
from evolution.loop.fixtures import take_fixtures
from evolution.models import Dataset, FailureCase, Harness
from evolution.queries.case_filters import filter_cases
from evolution.queries.case_page import list_dataset_places
from evolution.states import Split
from workbench.access import Request, actor_of, get_harness_for, told
from workbench.case_forms import MOST_JSON, DatasetForm, write_statements
from workbench.forms import CaseFilterForm
from workbench.json_tree import write_json
from workbench.rendering import render_page


@require_safe
def cases_dataset(request: Request, harness: str) -> HttpResponse:
    """Ask how cases are to stand in a dataset: those of ?ids=1,2, or with ?all=1 those that pass the filter."""
    return ask_about(request, get_harness_for(request, harness))


def ask_about(request: Request, record: Harness) -> HttpResponse:
    """The form for the chosen cases; what is posted to another view may name more than an address can hold."""
    with told(request):
        cases = _chosen(request, record)
        if not cases:
            raise LoopError(_("no case is chosen"))
        return _show(request, record, cases, DatasetForm(initial=_initial(record, cases)))
    return redirect("cases", record.name)


@require_POST
def add(request: Request, harness: str) -> HttpResponse:
    """Add the cases of the same query; what is wrong with the form is shown in it."""
    record = get_harness_for(request, harness)
    cases: list[FailureCase] = []
    with told(request):
        actor_of(request).require(Role.DEVELOPER)
        cases = _chosen(request, record)
    form = DatasetForm(request.POST)
    if cases and form.is_valid():
        with told(request):
            done = add_to_dataset(actor_of(request), record, cases, form.wanted())
            messages.success(request, describe_added(done))
            return redirect(_way_back(request, record, cases))
    return _show(request, record, cases, form) if cases else redirect("cases", record.name)


def _show(request: Request, harness: Harness, cases: list[FailureCase], form: DatasetForm) -> HttpResponse:
    return render_page(request, "case_dataset.html", _context(request, harness, cases, form), harness)


def _chosen(request: Request, harness: Harness) -> list[FailureCase]:
    """The cases that the form or the query names, of this harness; one more than can be added, at most."""
    cases: QuerySet[FailureCase] = FailureCase.objects.filter(harness=harness)
    if request.GET.get("all"):
        cases = filter_cases(harness, CaseFilterForm(request.GET).wanted_strictly())
    else:
        named = request.POST.getlist("ids") or request.GET.getlist("ids")
        given = ",".join(named).split(",")[: MOST_CASES + 1]
        cases = cases.filter(
            pk__in=[int(pk) for pk in given if pk.isascii() and pk.isdigit() and len(pk) < 19]
        )
    around = ("dataset_case__version__dataset", "cluster", "harness")
    return list(cases.select_related(*around).order_by("-pk")[: MOST_CASES + 1])


def _initial(harness: Harness, cases: list[FailureCase]) -> dict[str, Any]:
    """What the form begins with; of a single case that is in a dataset, what stands there."""
    names = list(
        Dataset.objects.filter(harness=harness).order_by("-versions__pk").values_list("name", flat=True)[:1]
    )
    initial: dict[str, Any] = {
        "dataset": names[0] if names else f"{harness.name}-failures"[:64],
        "split": Split.DEV,
        "with_fixtures": True,
    }
    return initial | _initial_of(cases[0]) if len(cases) == 1 else initial


def _initial_of(case: FailureCase) -> dict[str, Any]:
    there = next(iter(list_dataset_places(case)), None)
    if there is not None:
        request, fixtures, expected = there.request, there.fixtures, there.expected
        where = {"dataset": there.version.dataset.name, "split": there.split, "category": there.category}
    else:
        blame = find_blame(case)
        request = propose_request(case, blame.turn if blame else None)
        fixtures, expected = take_fixtures(case.trajectory).fixtures, {}
        where = {"category": case.category}
    return {
        **where,
        "key": suggest_key(case),
        "request": _write(request),
        "fixtures": _write(fixtures),
        "facts": write_statements(expected.get("facts"), "fact", "accept"),
        "forbidden": write_statements(expected.get("forbidden"), "claim", "match"),
    }


def _write(value: Any) -> str:
    """JSON to edit; nothing where it is too long for that, so that it is taken as it is."""
    text = write_json(value)
    return text if len(text) <= MOST_JSON else ""


def _context(
    request: Request, harness: Harness, cases: list[FailureCase], form: DatasetForm
) -> dict[str, Any]:
    datasets = Dataset.objects.filter(harness=harness).annotate(n=Count("versions")).filter(n__gt=0)
    single = cases[0] if len(cases) == 1 else None
    taken = take_fixtures(single.trajectory) if single else None
    return {
        "form": form,
        "ids": ",".join(str(case.pk) for case in cases) if "ids" in request.POST else "",
        "cases": cases[:20],
        "count": len(cases),
        "most": MOST_CASES,
        "single": single,
        "taken": taken,
        "is_long": bool(taken and taken.fixtures and not _write(taken.fixtures)),
        "unusable": sum(not has_question(propose_request(case)) for case in cases),
        "datasets": datasets.order_by("name"),
        "splits": Split.choices,
        "back": _way_back(request, harness, cases),
    }


def _way_back(request: Request, harness: Harness, cases: list[FailureCase]) -> str:
    """The page that the form was opened from, as it was filtered there."""
    query = request.GET.copy()
    is_single = len(cases) == 1 and not query.get("all")
    for name in ("ids", "all", "upto"):
        query.pop(name, None)
    address = (
        reverse("case", args=[harness.name, cases[0].pk])
        if is_single
        else reverse("cases", args=[harness.name])
    )
    return f"{address}?{query.urlencode()}" if query else address


def describe_added(done: AddedCases) -> str:
    """What came of it, in a sentence or some."""
    added = done.added
    said = [
        (len(added.added), ngettext("%d case added", "%d cases added", len(added.added))),
        (len(added.changed), ngettext("%d changed", "%d changed", len(added.changed))),
        (len(added.kept), ngettext("%d was there already", "%d were there already", len(added.kept))),
        (
            len(done.left_out),
            ngettext("%d left out: no request to ask", "%d left out: no request to ask", len(done.left_out)),
        ),
    ]
    counts = "; ".join(words % count for count, words in said if count)
    return _("In dataset %(version)s: %(counts)s.") % {"version": added.version, "counts": counts}
