"""Stage 4: the editor drafts a diagnosis's change as a commit on the proposal's branch; people amend it.

Nothing is committed that was not validated. Drafting again after a crash finds the commit that was made and
takes it. Deciding about a proposal is for the actions.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from copy import copy
from dataclasses import replace
from typing import Any

from django.db import transaction
from django.utils.translation import gettext as _

from evolution.actors import SYSTEM, Actor, Role
from evolution.errors import LoopError, StaleState
from evolution.loop.asking import About
from evolution.loop.authors import author_of, model_author
from evolution.loop.diagnosis import shown_keys
from evolution.loop.drafting import Draft, Ground, ask_editor
from evolution.loop.edits import EditRefused, check_edits
from evolution.loop.jobs import Progress
from evolution.loop.locks import lock_record
from evolution.loop.manifest import build_manifest
from evolution.loop.repositories import check_has_agent, open_repository
from evolution.loop.version_faults import list_version_faults
from evolution.loop.visibility import find_hidden
from evolution.models import Diagnosis, Job, Proposal
from evolution.ports import NamedModel
from evolution.prompts.diagnosis import LONGEST_QUOTE, DiagnosisBrief
from evolution.prompts.edit_blocks import line_end
from evolution.states import ExchangePurpose, JobKind, JobState, ProposalState
from evolution.transitions import move, record
from harness_repo.git.errors import BadPath, HarnessRepoError, MissingRef, NothingToCommit, StaleBase
from harness_repo.git.messages import TrailerValue, message_with_trailers
from harness_repo.git.objects import Author
from harness_repo.git.repository import HarnessRepository

# Characters of the diff of a draft that is made anew; more of it is said to be there.
LONGEST_LOST = 60_000
# In a manifest: what a draft says whose commit is not recorded yet, and the id of that.
UNRECORDED = "unrecorded"


def draft_proposal(
    proposal: Proposal, model: NamedModel, progress: Progress, job: Job | None = None
) -> Proposal:
    """Let the editor draft, or draft again after feedback, and put the commit on the branch.

    A proposal that is no longer drafting is left alone. Raises LoopError; the proposal is then for
    `fail_draft`.
    """
    if proposal.state != ProposalState.DRAFTING:
        return proposal
    repository = open_repository(proposal.harness)
    head = find_unrecorded_draft(repository, proposal)
    if head is None:
        check_has_agent(proposal.harness, new_base(proposal))
        progress(0, 2, "asking the editor")
        draft = _ask_editor(repository, proposal, model, job)
        progress(1, 2, "committing")
        head = _commit_draft(proposal, draft, model_author(model.name))
    _record_draft(repository, proposal, head)
    return proposal


def new_base(proposal: Proposal) -> str:
    """The version that the draft that is to be made starts from: its base, or where it is to be drafted anew."""
    asked = [str(item["onto"]) for item in proposal.feedback if item.get("onto") and not item.get("commit")]
    return asked[-1] if asked else proposal.base_commit


def fail_draft(proposal: Proposal, reason: str) -> None:
    """End a draft that came to nothing; an earlier version on the branch can still be confirmed."""
    if proposal.state == ProposalState.DRAFTING:
        target = ProposalState.DRAFTED if proposal.head_commit else ProposalState.FAILED
        # The sweep may be first.
        with suppress(StaleState), transaction.atomic():
            # Another version of the harness was for that try alone.
            feedback = [
                {key: value for key, value in item.items() if key != "onto"}
                if not item.get("commit")
                else item
                for item in proposal.feedback
            ]
            kept = dict(proposal.manifest)
            # A first draft that is on its branch is taken when it is asked for again; after feedback it may be another.
            if proposal.head_commit:
                kept.pop(UNRECORDED, None)
                _take_back(proposal)
            move(proposal, target, SYSTEM, reason, feedback=feedback, manifest=kept)
            proposal.reason = reason
            proposal.save(update_fields=["reason", "updated_at"])


def _take_back(proposal: Proposal) -> None:
    """Put the branch where the record is: a draft that is given up would pass for a change from outside."""
    with suppress(HarnessRepoError):
        repository = open_repository(proposal.harness)
        if built := find_unrecorded_draft(repository, proposal):
            repository.move_branch(proposal.branch, proposal.head_commit, expected_head=built)


def fail_abandoned_drafts() -> None:
    """End the drafts whose job has ended without them: its worker was lost too often, or it was for an older one."""
    for proposal in Proposal.objects.filter(state=ProposalState.DRAFTING):
        job = Job.objects.filter(kind=JobKind.DRAFT, target_id=proposal.pk).first()
        if job is not None and job.state in {JobState.FAILED, JobState.DONE}:
            fail_draft(proposal, job.message)


def read_diagnosis(diagnosis: Diagnosis) -> DiagnosisBrief:
    """The hypothesis as the editor is shown it: with people's amendments, and only the verified evidence.

    Nothing of failures that have become guard, sealed or calibration cases since.
    """
    evidence, turns = diagnosis.evidence, diagnosis.first_wrong_turns
    hidden = find_hidden(diagnosis.harness, {item["case"] for item in [*evidence, *turns]})
    return DiagnosisBrief.model_validate(
        {
            "cluster_name": diagnosis.output.get("cluster_name", ""),
            "cluster_description": diagnosis.output.get("cluster_description", ""),
            "category": diagnosis.category or "other",
            "part": diagnosis.part,
            "path": diagnosis.path,
            "hypothesis": diagnosis.hypothesis,
            "confidence": diagnosis.confidence,
            "evidence": [
                {"case": str(item["case"]), "turn": item["turn"], "quote": item["quote"][:LONGEST_QUOTE]}
                for item in evidence
                if item["case"] not in hidden
            ],
            "first_wrong_turns": [
                {"case": str(item["case"]), "turn": item["turn"]}
                for item in turns
                if item["case"] not in hidden
            ],
            "changes": diagnosis.changes,
            "refuted_by": diagnosis.refuted_by,
        }
    )


def branch_head(repository: HarnessRepository, proposal: Proposal) -> str | None:
    """Where the proposal's branch is, None when there is none."""
    try:
        return repository.resolve(f"refs/heads/{proposal.branch}") if proposal.branch else None
    except MissingRef:
        return None


def find_unrecorded_draft(repository: HarnessRepository, proposal: Proposal) -> str | None:
    """The commit that an earlier try of this draft made before it was cut off; None when there is none.

    Only the one that the proposal knows of: whatever else is on the branch, and whatever it says of itself, was put
    there by somebody else.
    """
    built = proposal.manifest.get(UNRECORDED, {}).get("commit")
    return built if built and branch_head(repository, proposal) == built else None


def commit_by_hand(
    actor: Actor,
    proposal: Proposal,
    edits: Mapping[str, bytes | None],
    expected_head: str,
    message: str = "",
) -> str:
    """Put a person's edit on the branch; StaleState when it moved, EditRefused when it can't go there."""
    repository = open_repository(proposal.harness)
    if branch_head(repository, proposal) != expected_head:
        raise StaleState(_("the branch of %(proposal)s has moved; reload it") % {"proposal": proposal})
    before = repository.files(expected_head)
    edits = {path: _as_before(before.get(path), data) for path, data in edits.items()}
    check_edits(repository.files(proposal.base_commit), before, edits)
    subject = " ".join(message.split()) or _("Edit %(paths)s") % {"paths": ", ".join(sorted(edits))}
    with _explain_refusals(proposal):
        return repository.commit(
            proposal.branch,
            edits,
            parent=expected_head,
            author=author_of(actor),
            message=message_with_trailers(subject, _trailers(proposal)),
            expected_head=expected_head,
        )


def _as_before(before: bytes | None, data: bytes | None) -> bytes | None:
    """A person's text with the line ends that the file had; browsers send their own."""
    if not before or data is None or line_end(before.decode("utf-8", "replace")) == "\n":
        return data
    return data.replace(b"\r\n", b"\n").replace(b"\n", b"\r\n")


def check_mergeable(proposal: Proposal) -> None:
    """Raise EditRefused when the branch holds what no edit may do, adds a problem to its base, or changes nothing."""
    if faults := list_version_faults(proposal):
        raise EditRefused("\n".join(faults))


def rebuild_manifest(proposal: Proposal, head: str) -> dict[str, object]:
    """The manifest for what the branch changes now, with the predictions that were made."""
    old = proposal.manifest
    return build_manifest(proposal, head, old.get("expected_effect", ""), old.get("risks", []))


def _ask_editor(
    repository: HarnessRepository, proposal: Proposal, model: NamedModel, job: Job | None
) -> Draft:
    diagnosis = proposal.diagnosis
    if diagnosis is None:
        raise LoopError(_("%(proposal)s has no diagnosis to draft from") % {"proposal": proposal})
    about = About(
        Actor(job.created_by, Role.DEVELOPER) if job is not None else SYSTEM,
        proposal.harness,
        ExchangePurpose.DRAFT,
        cluster=diagnosis.cluster,
        proposal=proposal,
        job=job,
    )
    draft = ask_editor(diagnosis, read_diagnosis(diagnosis), _ground(repository, proposal), model, about)
    keys = {*proposal.shown_keys, *shown_keys(diagnosis), *draft.keys}
    return replace(draft, keys=sorted(keys))


def _ground(repository: HarnessRepository, proposal: Proposal) -> Ground:
    """What is drafted on. Where the base moves, all that reviewers ever asked counts: the draft is made anew."""
    base = new_base(proposal)
    files = repository.files(base)
    if base != proposal.base_commit:
        lost = repository.diff(proposal.base_commit, proposal.head_commit)
        if len(lost) > LONGEST_LOST:
            lost = f"{lost[:LONGEST_LOST]}\n[… {len(lost) - LONGEST_LOST:,} characters cut …]"
        return Ground(files, files, feedback=_join_feedback(proposal.feedback), lost=lost)
    before = repository.files(proposal.head_commit) if proposal.head_commit else files
    waiting = [item for item in proposal.feedback if not item.get("commit")]
    return Ground(files, before, feedback=_join_feedback(waiting))


def _join_feedback(items: Iterable[Mapping[str, Any]]) -> str:
    return "\n\n".join(text for item in items if (text := str(item.get("text") or "").strip()))


def _commit_draft(proposal: Proposal, draft: Draft, author: Author) -> str:
    """Build the commit, put aside which it is and what the draft says, then move the branch to it.

    So a repeat finds either nothing on the branch, or what it knows; see `find_unrecorded_draft`. Until the commit is
    recorded the proposal says what its branch has, see `_record_draft`.
    """
    told = draft.output
    start, base = proposal.head_commit or proposal.base_commit, new_base(proposal)
    onto = None if base == proposal.base_commit else base
    text = "\n\n".join(part for part in (told.title, told.summary) if part)
    with _explain_refusals(proposal):
        message = message_with_trailers(text, _trailers(proposal))
        commit = open_repository(proposal.harness).build_commit(
            draft.edits, parent=start, author=author, message=message, onto=onto
        )
    if not proposal.branch:
        proposal.slug = told.slug
        proposal.branch = f"proposal/{proposal.pk}-{told.slug}"
    words: dict[str, Any] = {"title": told.title, "summary": told.summary, "model": author.name}
    words |= {"expected_effect": told.expected_effect, "risks": told.risks, "commit": commit}
    proposal.manifest = {**proposal.manifest, UNRECORDED: words}
    proposal.shown_keys = draft.keys
    proposal.save(update_fields=["slug", "branch", "manifest", "shown_keys", "updated_at"])
    _move_branch(proposal, commit, start)
    return commit


def _move_branch(proposal: Proposal, commit: str, start: str) -> None:
    """Put the branch, which is where the draft starts or is not there yet, to the commit; else StaleState."""
    repository = open_repository(proposal.harness)
    expected = None if branch_head(repository, proposal) is None else start
    with _explain_refusals(proposal):
        repository.move_branch(proposal.branch, commit, expected_head=expected)


def _trailers(proposal: Proposal) -> dict[str, TrailerValue]:
    trailers: dict[str, TrailerValue] = {"Proposal": proposal.pk}
    if proposal.diagnosis is not None:
        trailers["Cluster"] = proposal.diagnosis.cluster.number
    return trailers


@contextmanager
def _explain_refusals(proposal: Proposal) -> Iterator[None]:
    """Git's refusals of a commit as ours: StaleState when the branch has moved, EditRefused."""
    try:
        yield
    except StaleBase:
        raise StaleState(
            _("the branch of %(proposal)s has moved; reload it") % {"proposal": proposal}
        ) from None
    except (BadPath, NothingToCommit) as failure:
        raise EditRefused(str(failure)) from failure


def _record_draft(repository: HarnessRepository, proposal: Proposal, head: str) -> None:
    """Have the draft wait for review; StaleState when another worker's draft, or a person, was first."""
    start, base = proposal.head_commit, new_base(proposal)
    words = {**proposal.manifest, **proposal.manifest.get(UNRECORDED, {})}
    # Takes a while, so nobody is made to wait for it. It is of what the branch changes against its new base.
    based = copy(proposal)
    based.base_commit = base
    manifest = build_manifest(based, head, words.get("expected_effect", ""), words.get("risks", []))
    with transaction.atomic():
        lock_record(proposal)
        is_other = proposal.head_commit != start or new_base(proposal) != base
        if proposal.state != ProposalState.DRAFTING or is_other:
            raise StaleState(_("%(proposal)s was drafted by another worker") % {"proposal": proposal})
        feedback = [{**item, "commit": item.get("commit") or head} for item in proposal.feedback]
        move(
            proposal,
            ProposalState.DRAFTED,
            SYSTEM,
            base_commit=base,
            head_commit=head,
            manifest=manifest,
            feedback=feedback,
        )
        proposal.reason = ""
        for name in ("title", "summary", "model"):
            setattr(proposal, name, words.get(name, getattr(proposal, name)))
        proposal.save(update_fields=["reason", "title", "summary", "model", "updated_at"])
        changed = repository.changed_files(base, head)
        record(SYSTEM, "proposal.committed", proposal, commit=head, base=base, files=changed)
