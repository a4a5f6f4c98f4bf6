"""One file of a change: parts that a page with a diff asks for, or the file on a page of its own without scripts."""

from collections.abc import Iterator
from contextlib import contextmanager

from django.http import Http404, HttpResponse
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_safe

from evolution.actors import Role
from evolution.loop.repositories import open_repository
from evolution.models import Proposal, Step
from evolution.queries.steps import list_step_settled
from harness_repo.git.errors import HarnessRepoError
from workbench.access import Request, actor_of, get_for
from workbench.branch_log import list_commits, read_span
from workbench.diff_page import answer_file, read_change
from workbench.review_notes import list_notes
from workbench.step_notes import list_step_notes


@require_safe
def proposal_file(request: Request, harness: str, pk: int) -> HttpResponse:
    """A file of a proposal's diff, with what hangs beside its lines; see `answer_file`."""
    proposal = get_for(request, harness, Proposal.objects.select_related("harness"), pk=pk)
    span = read_span(proposal, list_commits(proposal), request.GET)
    page = reverse("proposal", args=[harness, pk]) + span.query
    with _or_not_found():
        change = read_change(
            open_repository(proposal.harness),
            span.base,
            span.head,
            address=reverse("proposal_file", args=[harness, pk]) + span.query,
            comment_address="" if span.is_part else _comment_address(request, proposal),
            notes=None if span.is_part else list_notes(request, proposal),
        )
    around = {"back": page, "back_name": _("Proposal %(number)d") % {"number": pk}}
    return answer_file(request, change, proposal.harness, around)


def _comment_address(request: Request, proposal: Proposal) -> str:
    """Where a note can be written; nowhere on the page of one file, which has no place for the form."""
    may_comment = actor_of(request).role >= Role.ANNOTATOR and bool(request.htmx)
    return reverse("proposal_comment", args=[proposal.harness.name, proposal.pk]) if may_comment else ""


@require_safe
def step_file(request: Request, harness: str, number: int) -> HttpResponse:
    """A file of what a step changes altogether; see `answer_file`."""
    step = get_for(request, harness, Step.objects.select_related("harness"), number=number)
    address = reverse("step_file", args=[harness, number])
    with _or_not_found():
        repository = open_repository(step.harness)
        notes = list_step_notes(step, list_step_settled(step))
        change = read_change(
            repository, step.base_commit, step.candidate_commit, address=address, notes=notes
        )
    around = {
        "back": reverse("step", args=[harness, number]),
        "back_name": _("Step %(number)d") % {"number": number},
    }
    return answer_file(request, change, step.harness, around)


@contextmanager
def _or_not_found() -> Iterator[None]:
    """What can't be read is not there; the page that led here says in words why."""
    try:
        yield
    except (HarnessRepoError, ValueError) as error:
        raise Http404(str(error)) from error
