import pytest

from evolution.errors import LoopError
from evolution.loop import steps
from evolution.loop.authors import author_of
from evolution.loop.evaluation import cancel_evaluation, resume_evaluation
from evolution.loop.repositories import open_repository
from evolution.models import Proposal, Step
from evolution.states import EvaluationState, Outcome, ProposalState, StepState
from tests.evolution.measured import (
    DEV,
    MANY,
    judge_reply,
    make_harness,
    make_measured_step,
    make_proposal,
    make_version,
    outage,
    run,
    teach,
)

pytestmark = pytest.mark.django_db


def test_confirmed_proposals_are_merged_on_the_steps_branch() -> None:
    harness = make_harness()
    proposals = [make_proposal(harness, teach(1)), make_proposal(harness, b"hi\n", path="prompts/more.md")]
    step = steps.merge_step(DEV, harness, proposals)
    repository = open_repository(harness)
    assert repository.branches()["step/1"] == step.candidate_commit
    assert repository.changed_files("main", step.candidate_commit) == ["prompts/more.md", "prompts/role.md"]
    assert set(step.proposals.values_list("state", flat=True)) == {ProposalState.IN_STEP}


def test_conflict_names_the_files_and_writes_nothing() -> None:
    harness = make_harness()
    proposals = [make_proposal(harness, teach(1)), make_proposal(harness, teach(2))]
    with pytest.raises(LoopError, match=r"prompts/role\.md"):
        steps.merge_step(DEV, harness, proposals)
    assert not Step.objects.exists()
    assert "step/1" not in open_repository(harness).branches()
    assert set(Proposal.objects.values_list("state", flat=True)) == {ProposalState.CONFIRMED}


def test_branch_left_by_a_failed_start_is_replaced() -> None:
    harness = make_harness()
    proposal = make_proposal(harness, teach(1))
    repository = open_repository(harness)
    left = {"harness.yaml": b"left\n"}
    repository.commit("step/1", left, parent="main", author=author_of(DEV), message="left")
    step = steps.merge_step(DEV, harness, [proposal])
    assert repository.branches()["step/1"] == step.candidate_commit


def test_step_takes_confirmed_proposals_only_and_one_at_a_time() -> None:
    harness = make_harness()
    first, second = make_proposal(harness, teach(1)), make_proposal(harness, teach(2))
    second.state = ProposalState.DRAFTED
    second.save()
    for proposals in ([], [second]):
        with pytest.raises(LoopError, match="confirmed"):
            steps.merge_step(DEV, harness, proposals)
    steps.merge_step(DEV, harness, [first])
    with pytest.raises(LoopError, match="undecided"):
        steps.merge_step(DEV, harness, [first])


def test_verdict_comes_with_the_second_evaluation() -> None:
    harness = make_harness()
    make_version(harness, MANY)
    step = steps.merge_step(DEV, harness, [make_proposal(harness, teach(*range(1, 12)))])
    base, candidate = steps.measure_step(DEV, step, model="m", judge_model="j")
    run(base)
    assert not steps.settle_step(step)
    run(candidate)
    steps.settle_steps(candidate)
    step.refresh_from_db()
    assert (step.state, step.verdict and step.verdict.outcome) == (StepState.EVALUATED, Outcome.PROMOTE)
    assert steps.settle_step(step)


def test_base_that_is_measured_already_is_not_measured_again() -> None:
    step = make_measured_step(teach(1))
    again = steps.measure_step(DEV, step, model="m", judge_model="j")
    assert again == [step.base_evaluation, step.candidate_evaluation]
    assert step.state == StepState.EVALUATED


def test_cancelled_evaluation_makes_the_step_ready_again() -> None:
    harness = make_harness()
    make_version(harness)
    step = steps.merge_step(DEV, harness, [make_proposal(harness, teach(1))])
    _base, candidate = steps.measure_step(DEV, step, model="m", judge_model="j")
    cancel_evaluation(DEV, candidate)
    steps.settle_steps(candidate)
    step.refresh_from_db()
    assert step.state == StepState.READY


def test_errors_make_it_inconclusive_until_they_are_resumed() -> None:
    harness = make_harness()
    make_version(harness, MANY)
    step = steps.merge_step(DEV, harness, [make_proposal(harness, teach(*range(1, 12)))])
    base, candidate = steps.measure_step(DEV, step, model="m", judge_model="j")
    run(base)
    run(candidate, judge=lambda s, u: outage()(s, u) if "wrong" in u else judge_reply(s, u))
    steps.settle_steps(candidate)
    step.refresh_from_db()
    assert step.verdict is not None
    assert (step.verdict.outcome, step.verdict.figures["comparable"]) == (Outcome.INCONCLUSIVE, False)
    resume_evaluation(DEV, candidate)
    run(candidate)
    steps.settle_steps(candidate)
    step.refresh_from_db()
    assert step.verdict.outcome == Outcome.PROMOTE
    assert candidate.state == EvaluationState.FINISHED


def test_proposal_taken_out_is_confirmed_again_and_the_step_to_be_measured() -> None:
    harness = make_harness()
    kept, out = make_proposal(harness, teach(1)), make_proposal(harness, b"hi\n", path="prompts/more.md")
    step = steps.merge_step(DEV, harness, [kept, out])
    steps.rebuild_step(DEV, step, without=out)
    out.refresh_from_db()
    assert (out.state, out.step) == (ProposalState.CONFIRMED, None)
    assert open_repository(harness).changed_files("main", step.candidate_commit) == ["prompts/role.md"]
    with pytest.raises(LoopError, match="nothing would be left"):
        steps.rebuild_step(DEV, step, without=kept)


def test_measured_step_that_is_rebuilt_is_ready_on_what_is_live_now() -> None:
    step = make_measured_step(teach(1))
    repository = open_repository(step.harness)
    moved = repository.commit(
        "main", {"prompts/new.md": b"x\n"}, parent="main", author=author_of(DEV), message="by hand"
    )
    steps.rebuild_step(DEV, step)
    assert (step.state, step.base_commit, step.verdict) == (StepState.READY, moved, None)
    assert repository.is_ancestor(moved, step.candidate_commit)
