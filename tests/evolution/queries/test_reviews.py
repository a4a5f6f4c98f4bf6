import pytest

from evolution.actions.reviews import Place, begin_thread, request_changes
from evolution.loop.repositories import open_repository
from evolution.models import Proposal
from evolution.queries.reviews import list_threads
from tests.evolution.actions.test_reviews import LINE, ROLE, ZOE, commit_outside, make_drafted
from tests.evolution.measured import ANNA, make_harness

pytestmark = pytest.mark.django_db


def answer(proposal: Proposal, commit: str) -> None:
    """Record a commit as the editor's answer to what was asked."""
    feedback = [{**entry, "commit": commit} for entry in Proposal.objects.get(pk=proposal.pk).feedback]
    Proposal.objects.filter(pk=proposal.pk).update(feedback=feedback, head_commit=commit)
    proposal.refresh_from_db()


def test_a_thread_is_answered_by_a_commit_that_touches_its_file() -> None:
    proposal = make_drafted(make_harness())
    begin_thread(ZOE, proposal, LINE, "name its source")
    begin_thread(ZOE, proposal, Place("prompts/request.md", "new", 1), "say more")
    begin_thread(ZOE, proposal, Place(), "in Chinese")
    request_changes(ANNA, proposal, "Shorter.", enqueue=False)
    commit = commit_outside(proposal, b"knows: q3\n")
    answer(proposal, commit)

    answers = {spoken.thread.path: spoken.answered_by for spoken in list_threads(proposal)}

    assert answers == {ROLE: commit, "prompts/request.md": "", "": commit}
    assert open_repository(proposal.harness).changed_files(proposal.base_commit, commit) == [ROLE]
