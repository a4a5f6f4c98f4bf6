"""One failure case: its page, its record for other programs, and what people do with it."""

from http import HTTPStatus
from typing import Any

from django.http import HttpResponse, HttpResponseRedirect
from django.shortcuts import redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_POST, require_safe

from evolution.actions import case_notes
from evolution.actions import cases as case_actions
from evolution.actors import Role
from evolution.loop.blame import find_blame
from evolution.loop.fixtures import take_fixtures
from evolution.models import FailureCase
from evolution.queries import case_page as queries
from evolution.queries.cases import find_neighbours
from evolution.queries.chat_request import ChatRequest, build_chat_request, last_turn
from evolution.queries.people import find_person, list_people
from harness_repo.runtime.curl import to_curl
from workbench.access import Request, actor_of, get_for, get_harness_for, told
from workbench.case_forms import AssignForm, NoteForm, TagsForm
from workbench.failure_signals import read_signals
from workbench.forms import CaseFilterForm, read_form, read_reason
from workbench.json_tree import write_json
from workbench.rendering import render_page
from workbench.whole_values import answer_value

# What a page about one case needs beside it.
_AROUND = ("cluster", "evaluation", "assignee", "import_run__source", "dataset_case__version", "harness")


def _get(request: Request, harness: str, pk: int) -> FailureCase:
    return get_for(request, harness, FailureCase.objects.select_related(*_AROUND), pk=pk)


def back_to(request: Request, case: FailureCase) -> HttpResponseRedirect:
    """The page of a case, within the list that it was opened from."""
    query = request.GET.urlencode()
    address = reverse("case", args=[case.harness.name, case.pk])
    return redirect(f"{address}?{query}" if query else address)


@require_safe
def case_page(request: Request, harness: str, pk: int) -> HttpResponse:
    """Show one failure with everything known about it; the query is that of the list it was opened from."""
    case = _get(request, harness, pk)
    record = get_harness_for(request, harness)
    wanted = CaseFilterForm(request.GET).wanted()
    newer, older = find_neighbours(record, wanted, case.pk)
    context: dict[str, Any] = {
        "case": case,
        "newer": newer,
        "older": older,
        "blame": find_blame(case),
        "signals": read_signals(case),
        "fixtures": take_fixtures(case.trajectory),
        "sightings": case.sightings.order_by("id")[:100],
        "notes": case.notes.all(),
        "similar": queries.list_similar(case),
        "places": queries.list_dataset_places(case),
        "people": list_people(),
        "value_url": reverse("case_value", args=[harness, pk]),
        "curl_url": reverse("case_curl", args=[harness, pk]),
        "own_name": request.user.get_username(),
    }
    return render_page(request, "case.html", context, record)


@require_safe
def case_raw(request: Request, harness: str, pk: int) -> HttpResponse:
    """The case as JSON, to look at or, with ?download, to keep; our own import takes it."""
    case = _get(request, harness, pk)
    answer = HttpResponse(write_json(queries.describe_case(case)), content_type="application/json")
    kept = "attachment" if "download" in request.GET else "inline"
    answer.headers["Content-Disposition"] = f'{kept}; filename="case-{case.pk}.json"'
    return answer


@require_safe
def case_value(request: Request, harness: str, pk: int) -> HttpResponse:
    """The whole of what the page shows the beginning of; ?path= is a JSON pointer into the record."""
    return answer_value(request, queries.describe_case(_get(request, harness, pk)))


@require_safe
def case_curl(request: Request, harness: str, pk: int) -> HttpResponse:
    """The request that led to ?turn=, without one to the turn that went wrong, as a command for a shell."""
    case = _get(request, harness, pk)
    blame = find_blame(case)
    # Without a turn to blame it is the last reply that somebody complained of.
    turn = _read_turn(request) or (blame.turn if blame else last_turn(case))
    made = build_chat_request(case, turn)
    if not made.payload["messages"]:
        return HttpResponse(
            _("Nothing that was sent to a model is known of this case."),
            status=HTTPStatus.NOT_FOUND,
            content_type="text/plain; charset=utf-8",
        )
    return HttpResponse(to_curl(made.payload, _describe(made)), content_type="text/plain; charset=utf-8")


def _describe(made: ChatRequest) -> list[str]:
    """What is not known of a request, for whoever makes it again."""
    notes = []
    if "model" not in made.payload:
        notes.append(_("Which model was asked is not known: set LLM_MODEL."))
    if made.are_tools_inferred:
        notes.append(_("Which tools it was offered is not known: these are read off the calls that it made."))
    elif "tools" not in made.payload:
        notes.append(_("No tools are known of this case."))
    return notes


def _read_turn(request: Request) -> int:
    given = request.GET.get("turn", "")
    return int(given) if given.isascii() and given.isdigit() and len(given) < 7 else 0


@require_POST
def ignore(request: Request, harness: str, pk: int) -> HttpResponse:
    """Take a failure out of the inbox, with a reason."""
    case = _get(request, harness, pk)
    with told(request, _("The case is ignored.")):
        actor_of(request).require(Role.DEVELOPER)
        case_actions.ignore_case(actor_of(request), case, read_reason(request.POST))
    return back_to(request, case)


@require_POST
def reopen(request: Request, harness: str, pk: int) -> HttpResponse:
    """Put a failure back into the inbox."""
    case = _get(request, harness, pk)
    with told(request, _("The case is open again.")):
        case_actions.reopen_case(actor_of(request), case)
    return back_to(request, case)


@require_POST
def tag(request: Request, harness: str, pk: int) -> HttpResponse:
    """Give a case these tags and no others."""
    case = _get(request, harness, pk)
    with told(request):
        case_notes.set_tags(actor_of(request), case, read_form(TagsForm(request.POST))["tags"])
    return back_to(request, case)


@require_POST
def assign(request: Request, harness: str, pk: int) -> HttpResponse:
    """Make a case somebody's, or nobody's."""
    case = _get(request, harness, pk)
    with told(request):
        name = read_form(AssignForm(request.POST))["person"]
        case_notes.assign_case(actor_of(request), case, find_person(name))
    return back_to(request, case)


@require_POST
def note(request: Request, harness: str, pk: int) -> HttpResponse:
    """Write something down about a case."""
    case = _get(request, harness, pk)
    with told(request, _("The note is there.")):
        case_notes.add_note(actor_of(request), case, read_form(NoteForm(request.POST))["text"])
    return back_to(request, case)
