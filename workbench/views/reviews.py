"""A reviewer's buttons on a proposal: approve, take it back, ask for changes, and talk about its lines.

With scripts an answer takes the place of the thread or form that asked; without them the page comes anew, and a
refused comment comes back in a page of its own.
"""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import HttpResponse
from django.shortcuts import get_object_or_404, redirect
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_http_methods, require_POST

from evolution.actions import reviews
from evolution.actions.reviews import Place
from evolution.actors import NotAllowed, Role
from evolution.errors import LoopError
from evolution.loop.repositories import open_repository
from evolution.loop.review_threads import commit_of, read_line
from evolution.models import Proposal, ReviewComment, ReviewThread
from evolution.queries.reviews import SpokenThread, list_threads
from harness_repo.git.errors import HarnessRepoError
from workbench.access import Request, actor_of, get_harness_for, told
from workbench.forms import first_error, read_form, read_reason
from workbench.rendering import render_page
from workbench.review_forms import ChangesForm, CommentForm, PlaceForm
from workbench.views.proposals import get_proposal, show_proposal


def _get_thread(request: Request, harness: str, pk: int) -> ReviewThread:
    threads = ReviewThread.objects.select_related("proposal__harness")
    return get_object_or_404(threads, proposal__harness=get_harness_for(request, harness), pk=pk)


@require_POST
def approve(request: Request, harness: str, pk: int) -> HttpResponse:
    """Approve the proposal at the commit that the page showed."""
    proposal = get_proposal(request, harness, pk)
    with told(request):
        text, reviewed = read_reason(request.POST), request.POST.get("reviewed", "")
        if reviews.approve_proposal(actor_of(request), proposal, text, reviewed=reviewed):
            messages.success(request, _("Approved. A step can be started with it."))
        else:
            messages.success(request, _("Approved. It takes the approval of somebody else, too."))
    return redirect("proposal", harness, pk)


@require_POST
def withdraw(request: Request, harness: str, pk: int) -> HttpResponse:
    """Take one's approval back."""
    proposal = get_proposal(request, harness, pk)
    with told(request, _("Your approval is taken back.")):
        reviews.withdraw_approval(actor_of(request), proposal, read_reason(request.POST))
    return redirect("proposal", harness, pk)


@require_POST
def request_changes(request: Request, harness: str, pk: int) -> HttpResponse:
    """Send the proposal to the editor with the reviewer's words and the open threads."""
    proposal = get_proposal(request, harness, pk)
    with told(request, _("The editor is at work on it.")):
        text, reviewed = read_form(ChangesForm(request.POST))["text"], request.POST.get("reviewed", "")
        reviews.request_changes(actor_of(request), proposal, text, reviewed=reviewed)
        return redirect("proposal", harness, pk)
    proposal.refresh_from_db()
    return show_proposal(request, proposal, kept_changes=request.POST.get("text", ""))


@require_http_methods(["GET", "HEAD", "POST"])
def comment(request: Request, harness: str, pk: int) -> HttpResponse:
    """The form for a comment on a line (GET), and the comment (POST)."""
    proposal = get_proposal(request, harness, pk)
    is_post = request.method == "POST"
    if is_post:
        _check_may_comment(request)
    form = PlaceForm(request.POST if is_post else request.GET)
    if not form.is_valid():
        messages.error(request, first_error(form))
        return redirect("proposal", harness, pk)
    place = Place(form.cleaned_data["path"], form.cleaned_data["side"], form.cleaned_data["line"] or 0)
    if not is_post:
        return _show_form(request, proposal, place)
    text = request.POST.get("text", "")
    try:
        thread = reviews.begin_thread(
            actor_of(request), proposal, place, _read_comment(text), reviewed=request.POST.get("reviewed")
        )
    except (LoopError, HarnessRepoError) as refusal:
        return _show_form(request, proposal, place, text=text, error=str(refusal))
    return _show_thread(request, thread, is_new=True)


def _check_may_comment(request: Request) -> None:
    try:
        actor_of(request).require(Role.ANNOTATOR)
    except NotAllowed as refusal:
        raise PermissionDenied(str(refusal)) from refusal


def _read_comment(text: str) -> str:
    form = CommentForm({"text": text})
    if not form.is_valid():
        raise LoopError(first_error(form))
    return str(form.cleaned_data["text"])


def _show_form(
    request: Request, proposal: Proposal, place: Place, text: str = "", error: str = ""
) -> HttpResponse:
    context = {
        "proposal": proposal,
        "place": place,
        "line_text": _line_text(proposal, place),
        "text": text,
        "error": error,
        "action": reverse("proposal_comment", args=[proposal.harness.name, proposal.pk]),
    }
    template = "parts/comment_row.html" if request.htmx else "comment.html"
    return render_page(request, template, context, proposal.harness)


def _line_text(proposal: Proposal, place: Place) -> str:
    if not place.path or not place.line:
        return ""
    try:
        repository = open_repository(proposal.harness)
        return read_line(repository, commit_of(proposal, place.side), place.path, place.line)
    except (LoopError, HarnessRepoError):
        return ""


def _show_thread(request: Request, thread: ReviewThread, **kept: Any) -> HttpResponse:
    """The thread as it is now: in its place, or on the proposal's page."""
    proposal = thread.proposal
    if not request.htmx:
        return redirect(
            reverse("proposal", args=[proposal.harness.name, proposal.pk]) + f"#thread-{thread.pk}"
        )
    spoken = _speak(proposal, thread)
    counted = proposal.threads.filter(resolved_at=None).count()
    context = {"proposal": proposal, "spoken": spoken, "open_threads": counted}
    context["is_listed"] = "listed" in request.POST
    return render_page(request, "parts/thread_answer.html", context | kept, proposal.harness)


def _speak(proposal: Proposal, thread: ReviewThread) -> SpokenThread:
    return next(spoken for spoken in list_threads(proposal) if spoken.thread.pk == thread.pk)


@require_POST
def reply(request: Request, harness: str, pk: int) -> HttpResponse:
    """Add to a thread."""
    thread = _get_thread(request, harness, pk)
    _check_may_comment(request)
    text = request.POST.get("text", "")
    try:
        reviews.reply_to_thread(actor_of(request), thread, _read_comment(text))
    except LoopError as refusal:
        address = reverse("thread_reply", args=[harness, pk])
        return _refuse(request, thread, address, {"text": text, "error": str(refusal)})
    return _show_thread(request, thread)


@require_POST
def resolve(request: Request, harness: str, pk: int) -> HttpResponse:
    """Settle a thread, or open it again."""
    thread = _get_thread(request, harness, pk)
    with told(request):
        is_resolved = request.POST.get("resolved") != "0"
        reviews.resolve_thread(actor_of(request), thread, is_resolved=is_resolved)
    return _show_thread(request, thread)


@require_POST
def change_comment(request: Request, harness: str, pk: int) -> HttpResponse:
    """Change one's own words."""
    _check_may_comment(request)
    comments = ReviewComment.objects.select_related("thread__proposal__harness")
    record = get_object_or_404(comments, thread__proposal__harness=get_harness_for(request, harness), pk=pk)
    text = request.POST.get("text", "")
    try:
        reviews.edit_comment(actor_of(request), record, _read_comment(text))
    except NotAllowed as refusal:
        raise PermissionDenied(str(refusal)) from refusal
    except LoopError as refusal:
        address = reverse("comment_edit", args=[harness, pk])
        kept = {"text": text, "error": str(refusal), "editing": record.pk}
        return _refuse(request, record.thread, address, kept)
    return _show_thread(request, record.thread)


def _refuse(request: Request, thread: ReviewThread, action: str, kept: dict[str, Any]) -> HttpResponse:
    """The form again, with what was typed and why it was refused."""
    if request.htmx:
        return _show_thread(request, thread, **{f"kept_{name}": value for name, value in kept.items()})
    place = Place(thread.path, thread.side, thread.line)
    context = {"proposal": thread.proposal, "place": place, "line_text": thread.line_text, "action": action}
    return render_page(request, "comment.html", context | kept, thread.proposal.harness)
