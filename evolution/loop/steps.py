"""Stage 5 and 6 for confirmed proposals: merged on `step/<n>`, measured against what is live, given a verdict.

What becomes of a measured step is `promotion`'s.
"""

import contextlib
from collections.abc import Iterator, Sequence
from typing import Any

from django.db import transaction
from django.db.models import Max, Q
from django.utils.translation import gettext as _

from evolution.actors import SYSTEM, Actor
from evolution.errors import LoopError, StaleState
from evolution.loop.authors import author_of
from evolution.loop.evaluation import (
    ENDED,
    create_evaluation,
    finish_evaluation,
    newest_version,
)
from evolution.loop.regressions import store_verdict
from evolution.loop.repositories import open_repository
from evolution.models import Evaluation, Harness, Proposal, Step
from evolution.states import EvaluationState, ProposalState, StepState
from evolution.transitions import move, record
from harness_repo.errors import HarnessRepoError, MergeConflict, NothingToCommit, RepoBusy, StaleBase
from harness_repo.repository import MAIN, HarnessRepository

UNDECIDED = (StepState.READY, StepState.EVALUATING, StepState.EVALUATED)


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


def lock_harness(harness: Harness) -> Harness:
    """Make others that move this harness's main or number its steps wait; needs a transaction."""
    return Harness.objects.select_for_update(no_key=True).get(pk=harness.pk)


def merge_step(actor: Actor, harness: Harness, proposals: Sequence[Proposal]) -> Step:
    """Merge confirmed proposals on the branch of a new step, which starts the evolution again if it was stopped.

    Raises LoopError when a step is undecided, a proposal is not confirmed, or their edits are in conflict; then
    nothing is written.
    """
    with transaction.atomic(), explain_git_errors():
        lock_harness(harness)
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


def _merge(actor: Actor, harness: Harness, branch: str, proposals: Sequence[Proposal]) -> tuple[str, str]:
    """Put the merge of the proposals with what is live on the branch; returns what is live, and the merge."""
    repository = open_repository(harness)
    base = repository.resolve(MAIN)
    _remove_branch(repository, branch)
    titles = "; ".join(proposal.title or str(proposal) for proposal in proposals)
    merged = repository.merge(
        branch,
        base,
        [proposal.head_commit for proposal in proposals],
        author=author_of(actor),
        message=f"{branch}: {titles}",
    )
    return base, merged


def _remove_branch(repository: HarnessRepository, branch: str) -> None:
    """Drop what the step had before, or what was left of one whose transaction failed."""
    if branch in repository.branches():
        repository.delete_branch(branch)


def rebuild_step(actor: Actor, step: Step, without: Proposal | None = None) -> None:
    """Merge the step's proposals again on what is live now, leaving one out if asked; its measurements are undone."""
    with transaction.atomic(), explain_git_errors():
        lock_harness(step.harness)
        left = [proposal for proposal in step.proposals.order_by("pk") if proposal != without]
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
            Step.objects.filter(pk=step.pk, state=StepState.READY).update(**fresh)
            step.refresh_from_db()
        else:
            move(step, StepState.READY, actor, **fresh)
        if without is not None:
            move(without, ProposalState.CONFIRMED, actor, step=None)
        record(actor, "step.rebuilt", step, base=base, left_out=without.pk if without else None)


def measure_step(actor: Actor, step: Step, *, model: str, judge_model: str) -> list[Evaluation]:
    """Bind the step to an evaluation of its base and one of its candidate; what is measured already is not again.

    Returns both. A step that is being evaluated keeps those it has.
    """
    with transaction.atomic():
        if step.state == StepState.EVALUATING and step.base_evaluation and step.candidate_evaluation:
            return [step.base_evaluation, step.candidate_evaluation]
        version = newest_version(step.harness)
        base, candidate = (
            create_evaluation(actor, step.harness, commit, version, model=model, judge_model=judge_model)
            for commit in (step.base_commit, step.candidate_commit)
        )
        move(step, StepState.EVALUATING, actor, base_evaluation=base, candidate_evaluation=candidate)
    settle_step(step)
    return [base, candidate]


def settle_step(step: Step) -> bool:
    """Give the step its verdict when both evaluations have ended; say whether it has one.

    Safe to repeat, and from several workers at once. A cancelled evaluation makes the step ready again; one that
    was resumed after the verdict brings a new one, as long as the step is undecided.
    """
    step.refresh_from_db()
    base, candidate = step.base_evaluation, step.candidate_evaluation
    if base is None or candidate is None or step.state not in UNDECIDED:
        return False
    states = {base.state, candidate.state}
    with contextlib.suppress(StaleState):
        if EvaluationState.CANCELLED in states and step.state == StepState.EVALUATING:
            move(step, StepState.READY, SYSTEM, "an evaluation was cancelled")
        if not states <= set(ENDED):
            return False
        verdict = store_verdict(base, candidate)
        if step.state == StepState.EVALUATING:
            move(step, StepState.EVALUATED, SYSTEM, verdict=verdict)
    return True


def conclude_evaluation(evaluation: Evaluation) -> None:
    """End an evaluation if it is complete, and give their verdict to the steps that waited for it."""
    if finish_evaluation(evaluation):
        settle_steps(evaluation)


def settle_steps(evaluation: Evaluation) -> None:
    """Settle the undecided steps that rest on an evaluation."""
    concerned = Q(base_evaluation=evaluation) | Q(candidate_evaluation=evaluation)
    for step in Step.objects.filter(concerned, state__in=UNDECIDED):
        settle_step(step)
