"""Stage 5 and 6 for confirmed proposals: merged on `step/<n>`, measured against what is live, given a verdict.

What becomes of a measured step is `promotion`'s.
"""

import contextlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max, Q
from django.utils.translation import gettext as _

from evolution.actors import SYSTEM, Actor
from evolution.errors import LoopError
from evolution.loop.authors import author_of
from evolution.loop.evaluation import (
    ENDED,
    create_evaluation,
    finish_evaluation,
    newest_version,
)
from evolution.loop.lineage import find_unreleased_main
from evolution.loop.locks import lock_harness, lock_record
from evolution.loop.regressions import store_verdict
from evolution.loop.repositories import open_repository
from evolution.models import Evaluation, Harness, Proposal, Step, Verdict
from evolution.states import DiagnosisState, EvaluationState, ProposalState, StepState
from evolution.transitions import change, move, record
from harness_repo.git.conflicts import FileConflict
from harness_repo.git.errors import HarnessRepoError, MergeConflict, NothingToCommit, RepoBusy, StaleBase
from harness_repo.git.messages import message_with_trailers
from harness_repo.git.repository import MAIN

UNDECIDED = (StepState.READY, StepState.EVALUATING, StepState.EVALUATED)


@dataclass(frozen=True)
class StepConflict:
    """Why confirmed proposals cannot be put together as they are."""

    # The first one that does not fit to what is live and those before it.
    proposal: Proposal
    before: tuple[Proposal, ...]
    files: tuple[FileConflict, ...]


@contextlib.contextmanager
def explain_git_errors() -> Iterator[None]:
    """Turn what the repository refuses into errors that people can act on."""
    try:
        yield
    except MergeConflict as failure:
        files = ", ".join(failure.files)
        raise LoopError(
            _("these proposals change the same lines of %(files)s; take one of them out") % {"files": files}
        ) from failure
    except NothingToCommit as failure:
        raise LoopError(_("what is live has these files already")) from failure
    except StaleBase as failure:
        raise LoopError(_("main moved since; rebuild the step on what is live now")) from failure
    except RepoBusy as failure:
        raise LoopError(_("the repository is busy; try again")) from failure
    except HarnessRepoError as failure:
        raise LoopError(str(failure)) from failure


def merge_step(actor: Actor, harness: Harness, proposals: Sequence[Proposal]) -> Step:
    """Merge confirmed proposals on the branch of a new step, which starts the evolution again if it was stopped.

    Raises LoopError when a step is undecided, a proposal is not confirmed, or their edits are in conflict; then
    nothing is written.
    """
    with transaction.atomic(), explain_git_errors():
        lock_harness(harness)
        for proposal in proposals:
            proposal.refresh_from_db()
        _check_start(harness, proposals)
        number = (harness.steps.aggregate(number=Max("number"))["number"] or 0) + 1
        branch = f"step/{number}"
        base, merged = _merge(actor, harness, branch, proposals)
        step = Step.objects.create(
            harness=harness,
            number=number,
            base_commit=base,
            branch=branch,
            candidate_commit=merged,
            created_by=actor.name,
        )
        step.merged.set(proposals)
        for proposal in proposals:
            move(proposal, ProposalState.IN_STEP, actor, step=step)
        Harness.objects.filter(pk=harness.pk).update(stopped_at=None, selected_commit="")
        record(actor, "step.created", step, proposals=[proposal.pk for proposal in proposals], base=base)
    return step


def _check_start(harness: Harness, proposals: Sequence[Proposal]) -> None:
    undecided = harness.steps.filter(state__in=UNDECIDED).first()
    if undecided is not None:
        raise LoopError(_("step %(number)d is undecided; decide it first") % {"number": undecided.number})
    if not proposals:
        raise LoopError(_("a step needs at least one confirmed proposal"))
    for proposal in proposals:
        if proposal.harness_id != harness.pk or proposal.state != ProposalState.CONFIRMED:
            raise LoopError(
                _("%(proposal)s is not confirmed for this harness; confirm it first") % {"proposal": proposal}
            )
        if proposal.diagnosis is not None and proposal.diagnosis.state == DiagnosisState.REJECTED:
            raise LoopError(_("the diagnosis behind %(proposal)s is rejected") % {"proposal": proposal})


def _merge(actor: Actor, harness: Harness, branch: str, proposals: Sequence[Proposal]) -> tuple[str, str]:
    """Put the merge of the proposals with what is live on the branch; returns what is live, and the merge.

    The branch leaves what it had, by a step's earlier build or a dead attempt, only when the merge is made.
    """
    _check_main(harness)
    repository = open_repository(harness)
    base = repository.resolve(MAIN)
    titles = "; ".join(proposal.title or str(proposal) for proposal in proposals)
    merged = repository.merge(
        branch,
        base,
        [proposal.head_commit for proposal in proposals],
        author=author_of(actor),
        message=message_with_trailers(f"{branch}: {titles}", _trailers(proposals)),
        expected_head=repository.branches().get(branch),
    )
    return base, merged


def _trailers(proposals: Sequence[Proposal]) -> dict[str, list[int]]:
    """What a step's commit says of where it comes from."""
    clusters = {proposal.diagnosis.cluster.number for proposal in proposals if proposal.diagnosis is not None}
    return {"Proposal": [proposal.pk for proposal in proposals], "Cluster": sorted(clusters)}


def find_conflict(harness: Harness, proposals: Sequence[Proposal]) -> StepConflict | None:
    """What keeps the proposals from being merged on what is live, None when nothing does; writes nothing.

    Raises HarnessRepoError when a branch cannot be read.
    """
    heads = [proposal.head_commit for proposal in proposals]
    check = open_repository(harness).check_merge(MAIN, heads)
    if check.head is None:
        return None
    place = heads.index(check.head)
    return StepConflict(proposals[place], tuple(proposals[:place]), check.conflicts)


def _check_main(harness: Harness) -> None:
    """Build on a released version only: anything else on main is half of a decision."""
    unreleased = find_unreleased_main(harness)
    if unreleased:
        raise LoopError(
            _(
                "main is at %(commit)s, which no release names: repeat the decision that was cut off, or roll back "
                "to a release"
            )
            % {"commit": unreleased[:12]}
        )


def rebuild_step(actor: Actor, step: Step, without: Proposal | None = None) -> None:
    """Merge the step's proposals again on what is live now, leaving one out if asked; its measurements are undone.

    Raises LoopError when the step is decided, nothing would be left, or the merge fails; then nothing has moved.
    """
    with transaction.atomic(), explain_git_errors():
        lock_record(step)
        if step.state not in UNDECIDED:
            raise LoopError(_("%(step)s is decided; start a new step") % {"step": step})
        inside = list(step.proposals.order_by("pk"))
        if without is not None and without not in inside:
            raise LoopError(_("%(proposal)s is not in %(step)s") % {"proposal": without, "step": step})
        left = [proposal for proposal in inside if proposal != without]
        if not left:
            raise LoopError(_("nothing would be left of the step; roll it back instead"))
        base, merged = _merge(actor, step.harness, step.branch, left)
        fresh: dict[str, Any] = {
            "base_commit": base,
            "candidate_commit": merged,
            "base_evaluation": None,
            "candidate_evaluation": None,
            "verdict": None,
        }
        if step.state == StepState.READY:
            change(step, **fresh)
        else:
            move(step, StepState.READY, actor, **fresh)
        step.merged.set(left)
        if without is not None:
            without.refresh_from_db()
            move(without, ProposalState.CONFIRMED, actor, step=None)
        record(actor, "step.rebuilt", step, base=base, left_out=without.pk if without else None)


def measure_step(
    actor: Actor, step: Step, *, model: str, judge_model: str, user_model: str = ""
) -> list[Evaluation]:
    """Bind the step to an evaluation of its base and one of its candidate; what is measured already is not again.

    What the base lacks is made beside the candidate, so that both see the same endpoints.
    Returns both. A step that is being evaluated keeps those it has.
    """
    with transaction.atomic():
        lock_record(step)
        if step.state == StepState.EVALUATING and step.base_evaluation and step.candidate_evaluation:
            return [step.base_evaluation, step.candidate_evaluation]
        models: dict[str, Any] = {"model": model, "judge_model": judge_model, "user_model": user_model}
        version = newest_version(step.harness)
        base = create_evaluation(actor, step.harness, step.base_commit, version, resumes=True, **models)
        candidate = create_evaluation(
            actor, step.harness, step.candidate_commit, version, base=base, **models
        )
        move(
            step,
            StepState.EVALUATING,
            actor,
            base_evaluation=base,
            candidate_evaluation=candidate,
            verdict=None,
        )
    # Other steps may rest on a base that was resumed for this one.
    settle_steps(base)
    settle_step(step)
    return [base, candidate]


def settle_step(step: Step) -> bool:
    """Give the step its verdict when both evaluations have ended; say whether it has one.

    Safe to repeat, and from several workers at once. A cancelled evaluation makes the step ready again, a resumed
    one makes it wait for a new verdict, as long as the step is undecided.
    """
    step.refresh_from_db()
    # Takes a while, so nobody is made to wait for it.
    verdict = _make_verdict(step)
    with transaction.atomic():
        lock_record(step)
        if step.state in UNDECIDED:
            _follow_evaluations(step, verdict)
    return step.state == StepState.EVALUATED


def _make_verdict(step: Step) -> Verdict | None:
    """The verdict of an undecided step; None as long as its evaluations have not ended."""
    base, candidate = step.base_evaluation, step.candidate_evaluation
    if base is None or candidate is None or step.state not in UNDECIDED:
        return None
    return store_verdict(base, candidate) if {base.state, candidate.state} <= set(ENDED) else None


def _is_over(verdict: Verdict, step: Step) -> bool:
    pair = (step.base_evaluation_id, step.candidate_evaluation_id)
    return (verdict.base_id, verdict.candidate_id) == pair


def _follow_evaluations(step: Step, verdict: Verdict | None) -> None:
    """Put an undecided step in the state that its evaluations are in by now."""
    base, candidate = step.base_evaluation, step.candidate_evaluation
    if base is None or candidate is None:
        return
    states = {base.state, candidate.state}
    if EvaluationState.CANCELLED in states:
        if step.state != StepState.READY:
            move(step, StepState.READY, SYSTEM, _("an evaluation was cancelled"), verdict=None)
    elif not states <= set(ENDED):
        if step.state != StepState.EVALUATING:
            move(step, StepState.EVALUATING, SYSTEM, _("an evaluation was resumed"), verdict=None)
    elif step.state == StepState.EVALUATING and verdict is not None and _is_over(verdict, step):
        move(step, StepState.EVALUATED, SYSTEM, verdict=verdict)


def conclude_evaluation(evaluation: Evaluation) -> None:
    """End an evaluation if it is complete, and give their verdict to the steps that waited for it."""
    if finish_evaluation(evaluation):
        settle_steps(evaluation)


def settle_steps(evaluation: Evaluation) -> None:
    """Settle the undecided steps that rest on an evaluation."""
    concerned = Q(base_evaluation=evaluation) | Q(candidate_evaluation=evaluation)
    for step in Step.objects.filter(concerned, state__in=UNDECIDED):
        settle_step(step)
