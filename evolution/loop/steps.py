"""Stage 5 and 6 for confirmed proposals: merged on `step/<n>`, measured against what is live, given a verdict.

What becomes of a measured step is `promotion`'s.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import transaction
from django.db.models import Max, Q
from django.utils.translation import gettext as _

from evolution.actors import SYSTEM, Actor
from evolution.errors import LoopError
from evolution.loop.evaluation import (
    ENDED,
    create_evaluation,
    finish_evaluation,
    newest_version,
)
from evolution.loop.held_in import list_step_held_in
from evolution.loop.locks import lock_harness, lock_record
from evolution.loop.predictions import settle_predictions
from evolution.loop.proposals import branch_head
from evolution.loop.rebasing import BuiltRebase, build_rebase, move_branches, record_rebase
from evolution.loop.regressions import store_verdict
from evolution.loop.repositories import open_repository
from evolution.loop.reviews import is_approved
from evolution.loop.step_builds import describe_build, take_earlier
from evolution.loop.step_merges import build_step, explain_git_errors, find_base, move_step_branch
from evolution.models import Evaluation, Harness, Proposal, Step, Verdict
from evolution.states import DiagnosisState, EvaluationState, ProposalState, StepState
from evolution.transitions import change, move, record

UNDECIDED = (StepState.READY, StepState.EVALUATING, StepState.EVALUATED)


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
        base = find_base(harness)
        merged = build_step(actor, harness, branch, base, proposals)
        move_step_branch(harness, branch, merged)
        step = Step.objects.create(
            harness=harness,
            number=number,
            base_commit=base,
            branch=branch,
            candidate_commit=merged,
            held_in=list_step_held_in(harness, number, proposals),
            created_by=actor.name,
        )
        step.merged.set(proposals)
        for proposal in proposals:
            move(proposal, ProposalState.IN_STEP, actor, step=step)
        Harness.objects.filter(pk=harness.pk).update(stopped_at=None, selected_commit="")
        record(actor, "step.created", step, base=base, **describe_build(merged, proposals))
    return step


def _check_start(harness: Harness, proposals: Sequence[Proposal]) -> None:
    undecided = harness.steps.filter(state__in=UNDECIDED).first()
    if undecided is not None:
        raise LoopError(_("step %(number)d is undecided; decide it first") % {"number": undecided.number})
    if not proposals:
        raise LoopError(_("a step needs at least one approved proposal"))
    for proposal in proposals:
        _check_proposal(harness, proposal)


def _check_proposal(harness: Harness, proposal: Proposal) -> None:
    obstacle = find_obstacle(harness, proposal)
    if obstacle:
        raise LoopError(obstacle)


def find_obstacle(harness: Harness, proposal: Proposal) -> str:
    """Why no step of the harness can take the proposal, and the way out; empty where one can. HarnessRepoError."""
    text = ""
    if proposal.harness_id != harness.pk or proposal.state != ProposalState.CONFIRMED:
        text = _("%(proposal)s is not approved for this harness; approve it first")
    elif proposal.diagnosis is not None and proposal.diagnosis.state == DiagnosisState.REJECTED:
        text = _(
            "the diagnosis behind %(proposal)s is rejected: reject the proposal, too, or reopen the diagnosis"
        )
    elif proposal.diagnosis is not None and proposal.diagnosis.handled_as:
        text = _(
            "the diagnosis behind %(proposal)s was dealt with as no fault of the harness: reject the proposal, too, "
            "or reopen the diagnosis"
        )
    elif branch_head(open_repository(proposal.harness), proposal) not in (None, proposal.head_commit):
        text = _("the branch of %(proposal)s has moved; look at it again")
    # It may have been confirmed before the harness needed a second reviewer.
    elif proposal.harness.needs_second_reviewer and not is_approved(proposal):
        text = _(
            "%(proposal)s needs the approval of a developer who is not its author; ask one to approve it"
        )
    return text % {"proposal": proposal}


@dataclass(frozen=True)
class Rebuilt:
    """What became of a step's proposals when it was built anew."""

    # on the new base with an identical diff, or on a base that did not move
    kept: tuple[Proposal, ...]
    # out of the step: on the new base they change something else, which nobody has approved
    to_review: tuple[Proposal, ...]


def rebuild_step(
    actor: Actor, step: Step, without: Proposal | None = None, adding: Proposal | None = None
) -> Rebuilt:
    """Merge the step's proposals again on what is live now, without or with one more if asked.

    Its measurements are undone; what was built so before is the same version again, so they can be taken up. Where
    what is live has moved, every proposal is put on it first; one whose diff is another there leaves the step and
    waits for review. Raises LoopError when the step is decided, a conflict is open, or nothing would be left; then
    nothing has moved.
    """
    with transaction.atomic(), explain_git_errors():
        lock_record(step)
        wanted = _choose(step, without, adding)
        base = find_base(step.harness)
        rebases = _build_rebases(actor, wanted, base) if base != step.base_commit else []
        changed = {
            rebased.proposal.pk
            for rebased in (record_rebase(actor, built) for built in rebases)
            if not rebased.is_kept
        }
        left = [proposal for proposal in wanted if proposal.pk not in changed]
        to_review = [proposal for proposal in wanted if proposal.pk in changed]
        if not left:
            raise LoopError(
                _(
                    "on what is live now, the proposals change something else than what was approved: send the step "
                    "back for revision, then put them on the live version and review them again"
                )
            )
        merged = take_earlier(step, base, build_step(actor, step.harness, step.branch, base, left), left)
        move_branches(rebases)
        move_step_branch(step.harness, step.branch, merged)
        _record_build(actor, step, base, merged, left)
        for proposal in to_review:
            if proposal.state == ProposalState.IN_STEP:
                move(
                    proposal,
                    ProposalState.DRAFTED,
                    actor,
                    _("its changes are others on what is live now"),
                    step=None,
                )
        if without is not None:
            without.refresh_from_db()
            move(without, ProposalState.CONFIRMED, actor, step=None)
        if adding is not None and adding in left:
            move(adding, ProposalState.IN_STEP, actor, step=step)
        record(
            actor,
            "step.rebuilt",
            step,
            base=base,
            **describe_build(merged, left),
            left_out=without.pk if without else None,
            put_in=adding.pk if adding else None,
            to_review=[proposal.pk for proposal in to_review],
        )
    return Rebuilt(tuple(left), tuple(to_review))


def _choose(step: Step, without: Proposal | None, adding: Proposal | None) -> list[Proposal]:
    """The proposals that the locked step is to be made of; LoopError."""
    if step.state not in UNDECIDED:
        raise LoopError(_("%(step)s is decided; start a new step") % {"step": step})
    inside = list(step.proposals.order_by("pk"))
    if without is not None and without not in inside:
        raise LoopError(_("%(proposal)s is not in %(step)s") % {"proposal": without, "step": step})
    if adding is not None and adding not in inside:
        adding.refresh_from_db()
        _check_proposal(step.harness, adding)
        inside = sorted([*inside, adding], key=lambda proposal: proposal.pk)
    left = [proposal for proposal in inside if proposal != without]
    if not left:
        raise LoopError(_("nothing would be left of the step; roll it back instead"))
    return left


def _build_rebases(actor: Actor, proposals: Sequence[Proposal], base: str) -> list[BuiltRebase]:
    built = (build_rebase(actor, proposal, base) for proposal in proposals)
    return [each for each in built if each is not None]


def _record_build(actor: Actor, step: Step, base: str, merged: str, proposals: Sequence[Proposal]) -> None:
    """What the step is made of now; nothing of it is measured."""
    fresh: dict[str, Any] = {
        "base_commit": base,
        "candidate_commit": merged,
        "held_in": list_step_held_in(step.harness, step.number, proposals),
        "base_evaluation": None,
        "candidate_evaluation": None,
        "verdict": None,
    }
    if step.state == StepState.READY:
        change(step, **fresh)
    else:
        move(step, StepState.READY, actor, **fresh)
    step.merged.set(proposals)


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
            # The dataset may have got cases since the step was made.
            held_in=list_step_held_in(step.harness, step.number, step.merged.all(), version),
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
    """Settle the undecided steps that rest on an evaluation, and the predictions that it decides."""
    concerned = Q(base_evaluation=evaluation) | Q(candidate_evaluation=evaluation)
    for step in Step.objects.filter(concerned, state__in=UNDECIDED):
        settle_step(step)
    settle_predictions(evaluation)
