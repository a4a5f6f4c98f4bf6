"""Stage 4: the editor drafts a diagnosis's change as a commit on the proposal's branch; people amend it.

Nothing is committed that was not validated. Drafting again after a crash finds the commit that was made and
takes it. Deciding about a proposal is for the actions.
"""

from collections.abc import Mapping
from contextlib import suppress

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import SYSTEM, Actor
from evolution.errors import LoopError, StaleState
from evolution.loop.asking import ask_model
from evolution.loop.authors import author_of, model_author
from evolution.loop.diagnosis import build_brief, readable_files, sample_members
from evolution.loop.edits import EditRefused, check_edits, check_problems
from evolution.loop.jobs import Progress
from evolution.loop.locks import lock_record
from evolution.loop.manifest import build_manifest
from evolution.loop.repositories import check_has_agent, open_repository
from evolution.models import Diagnosis, Job, Proposal
from evolution.ports import NamedModel
from evolution.prompts.diagnosis import DiagnosisOutput
from evolution.prompts.draft import BadEdit, DraftOutput, apply_edits, draft_request
from evolution.states import JobKind, JobState, ProposalState
from evolution.transitions import move, record
from harness_repo.git.errors import BadPath, MissingRef, NothingToCommit, StaleBase
from harness_repo.git.messages import message_with_trailers, read_trailers
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository

SHOWN_CASES = 6


def draft_proposal(proposal: Proposal, model: NamedModel, progress: Progress) -> Proposal:
    """Let the editor draft, or draft again after feedback, and put the commit on the branch.

    A proposal that is no longer drafting is left alone. Raises LoopError; the proposal is then for
    `fail_draft`.
    """
    if proposal.state != ProposalState.DRAFTING:
        return proposal
    repository = open_repository(proposal.harness)
    head = find_unrecorded_draft(repository, proposal)
    if head is None:
        check_has_agent(proposal.harness, proposal.base_commit)
        progress(0, 2, "asking the editor")
        draft = _ask_editor(repository, proposal, model)
        progress(1, 2, "committing")
        head = _commit_draft(repository, proposal, draft, model_author(model.name))
    _record_draft(repository, proposal, head)
    return proposal


def fail_draft(proposal: Proposal, reason: str) -> None:
    """End a draft that came to nothing; an earlier version on the branch can still be confirmed."""
    if proposal.state == ProposalState.DRAFTING:
        target = ProposalState.DRAFTED if proposal.head_commit else ProposalState.FAILED
        # The sweep may be first.
        with suppress(StaleState), transaction.atomic():
            move(proposal, target, SYSTEM, reason)
            proposal.reason = reason
            proposal.save(update_fields=["reason", "updated_at"])


def fail_abandoned_drafts() -> None:
    """End the drafts whose job has failed without them, because its worker was lost too often."""
    for proposal in Proposal.objects.filter(state=ProposalState.DRAFTING):
        job = Job.objects.filter(kind=JobKind.DRAFT, target_id=proposal.pk).first()
        if job is not None and job.state == JobState.FAILED:
            fail_draft(proposal, job.message)


def read_diagnosis(diagnosis: Diagnosis) -> DiagnosisOutput:
    """The diagnosis as the editor is shown it: with people's amendments, and only the verified evidence."""
    return DiagnosisOutput.model_validate(
        {
            **diagnosis.output,
            "part": diagnosis.part,
            "path": diagnosis.path,
            "hypothesis": diagnosis.hypothesis,
            "changes": diagnosis.changes,
            "evidence": [
                {"case": str(item["case"]), "turn": item["turn"], "quote": item["quote"]}
                for item in diagnosis.evidence
            ],
        }
    )


def branch_head(repository: HarnessRepository, proposal: Proposal) -> str | None:
    """Where the proposal's branch is, None when there is none."""
    try:
        return repository.resolve(f"refs/heads/{proposal.branch}") if proposal.branch else None
    except MissingRef:
        return None


def find_unrecorded_draft(repository: HarnessRepository, proposal: Proposal) -> str | None:
    """The commit that an earlier try of this draft made before it was cut off; None when there is none."""
    head = branch_head(repository, proposal)
    start = proposal.head_commit or proposal.base_commit
    if head is None or head == start:
        return None
    newest = repository.log(head, 1)[0]
    by_model = newest.email == model_author(newest.author).email
    is_its = ("Proposal", str(proposal.pk)) in read_trailers(newest.message)
    is_ours = by_model and newest.parents == (start,) and is_its
    return head if is_ours else None


def commit_by_hand(
    actor: Actor, proposal: Proposal, edits: Mapping[str, bytes | None], expected_head: str
) -> str:
    """Put a person's edit on the branch; StaleState when it moved, EditRefused when it can't go there."""
    repository = open_repository(proposal.harness)
    if branch_head(repository, proposal) != expected_head:
        raise StaleState(_("the branch of %(proposal)s has moved; reload it") % {"proposal": proposal})
    before = repository.files(expected_head)
    check_edits(repository.files(proposal.base_commit), before, edits)
    subject = _("Edit %(paths)s") % {"paths": ", ".join(sorted(edits))}
    return _commit(proposal, edits, expected_head, author=author_of(actor), subject=subject)


def check_mergeable(proposal: Proposal) -> None:
    """Raise EditRefused when the branch has a problem that its base does not have, or changes nothing."""
    repository = open_repository(proposal.harness)
    base, head = repository.files(proposal.base_commit), repository.files(proposal.head_commit)
    if base == head:
        raise EditRefused(_("the branch changes nothing"))
    check_problems(base, head)


def rebuild_manifest(proposal: Proposal, head: str) -> dict[str, object]:
    """The manifest for what the branch changes now, with the predictions that were made."""
    changed = open_repository(proposal.harness).changed_files(proposal.base_commit, head)
    old = proposal.manifest
    return build_manifest(proposal, changed, old.get("expected_effect", ""), old.get("risks", []))


def _ask_editor(repository: HarnessRepository, proposal: Proposal, model: NamedModel) -> DraftOutput:
    diagnosis = proposal.diagnosis
    if diagnosis is None:
        raise LoopError(_("%(proposal)s has no diagnosis to draft from") % {"proposal": proposal})
    files = readable_files(repository.files(proposal.head_commit or proposal.base_commit))
    base = readable_files(repository.files(proposal.base_commit))
    request = draft_request(
        read_diagnosis(diagnosis),
        files,
        model=model.name,
        feedback=_open_feedback(proposal),
        original={
            path: base.get(path) for path in sorted({*base, *files}) if base.get(path) != files.get(path)
        },
        cases=[build_brief(case) for case in sample_members(diagnosis.cluster, SHOWN_CASES)],
    )
    return ask_model(model, request, DraftOutput)


def _open_feedback(proposal: Proposal) -> str | None:
    """What reviewers said since the last commit."""
    texts = [str(item["text"]) for item in proposal.feedback if not item.get("commit")]
    return "\n".join(texts) or None


def _commit_draft(
    repository: HarnessRepository, proposal: Proposal, draft: DraftOutput, author: Author
) -> str:
    """Validate the draft, keep what it says, then commit: a repeat finds either nothing or all of it."""
    start = proposal.head_commit or proposal.base_commit
    before = repository.files(start)
    if not draft.edits:
        raise EditRefused(
            _("nothing to change in the draft for this feedback")
            if proposal.head_commit
            else _("nothing to change in the harness for this diagnosis")
        )
    try:
        edits = apply_edits(before, draft.edits)
    except (BadEdit, UnicodeDecodeError) as failure:
        raise EditRefused(str(failure)) from failure
    check_edits(repository.files(proposal.base_commit), before, edits)
    if not proposal.branch:
        proposal.slug = draft.slug
        proposal.branch = f"proposal/{proposal.pk}-{draft.slug}"
    proposal.title, proposal.summary, proposal.model = draft.title, draft.summary, author.name
    proposal.manifest = {"expected_effect": draft.expected_effect, "risks": draft.risks}
    proposal.save(update_fields=["slug", "branch", "title", "summary", "model", "manifest", "updated_at"])
    return _commit(proposal, edits, start, author=author, subject=draft.title, body=draft.summary)


def _commit(
    proposal: Proposal,
    edits: Mapping[str, bytes | None],
    start: str,
    *,
    author: Author,
    subject: str,
    body: str = "",
) -> str:
    repository = open_repository(proposal.harness)
    trailers = {"Proposal": proposal.pk}
    if proposal.diagnosis is not None:
        trailers["Cluster"] = proposal.diagnosis.cluster.number
    message = message_with_trailers("\n\n".join(part for part in (subject, body) if part), trailers)
    exists = branch_head(repository, proposal) is not None
    try:
        return repository.commit(
            proposal.branch,
            edits,
            parent=start,
            author=author,
            message=message,
            expected_head=start if exists else None,
        )
    except StaleBase:
        raise StaleState(
            _("the branch of %(proposal)s has moved; reload it") % {"proposal": proposal}
        ) from None
    except (BadPath, NothingToCommit) as failure:
        raise EditRefused(str(failure)) from failure


def _record_draft(repository: HarnessRepository, proposal: Proposal, head: str) -> None:
    """Have the draft wait for review; StaleState when another worker's draft, or a person, was first."""
    start = proposal.head_commit
    with transaction.atomic():
        lock_record(proposal)
        if proposal.state != ProposalState.DRAFTING or proposal.head_commit != start:
            raise StaleState(_("%(proposal)s was drafted by another worker") % {"proposal": proposal})
        feedback = [{**item, "commit": item.get("commit") or head} for item in proposal.feedback]
        manifest = rebuild_manifest(proposal, head)
        move(
            proposal,
            ProposalState.DRAFTED,
            SYSTEM,
            head_commit=head,
            manifest=manifest,
            feedback=feedback,
        )
        proposal.reason = ""
        proposal.save(update_fields=["reason", "updated_at"])
        changed = repository.changed_files(proposal.base_commit, head)
        record(SYSTEM, "proposal.committed", proposal, commit=head, files=changed)
