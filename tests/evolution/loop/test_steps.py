from collections.abc import Callable

import pytest

from evolution.errors import LoopError
from evolution.loop import promotion, steps
from evolution.loop.authors import author_of
from evolution.loop.evaluation import cancel_evaluation, list_batch, resume_evaluation
from evolution.loop.repositories import open_repository
from evolution.models import Diagnosis, Proposal, Step
from evolution.states import DiagnosisState, EvaluationState, Outcome, ProposalState, StepState
from tests.evolution.intake import make_cluster
from tests.evolution.measured import (
    ANNA,
    DEV,
    MANY,
    judge_reply,
    knows,
    make_evaluation,
    make_harness,
    make_measured_step,
    make_proposal,
    make_version,
    measure,
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
        with pytest.raises(LoopError, match="approved"):
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
    first = make_measured_step(teach(*range(1, 21)))
    promotion.promote(ANNA, first)
    edit = make_proposal(first.harness, b"x\n", path="prompts/new.md")
    step = measure(steps.merge_step(DEV, first.harness, [edit]))
    moved = promotion.roll_back_to(ANNA, first.harness, first.harness.releases.get(number=1), "x").commit
    repository = open_repository(step.harness)
    steps.rebuild_step(DEV, step)
    assert (step.state, step.base_commit, step.verdict) == (StepState.READY, moved, None)
    assert repository.is_ancestor(moved, step.candidate_commit)


def two_proposals() -> tuple[Step, Proposal]:
    """A step of two proposals, and the second of them."""
    harness = make_harness()
    make_version(harness)
    kept, out = (
        make_proposal(harness, teach(1, 2, 3)),
        make_proposal(harness, b"hi\n", path="prompts/more.md"),
    )
    return steps.merge_step(DEV, harness, [kept, out]), out


def test_step_that_was_rebuilt_meanwhile_is_measured_as_it_is_now() -> None:
    step, out = two_proposals()
    stale = Step.objects.get(pk=step.pk)
    steps.rebuild_step(DEV, step, without=out)
    measure(stale)
    evaluation = stale.candidate_evaluation
    assert evaluation is not None
    assert evaluation.commit == stale.candidate_commit == step.candidate_commit


def test_step_that_was_measured_meanwhile_is_rebuilt_and_not_measured() -> None:
    step, out = two_proposals()
    stale = Step.objects.get(pk=step.pk)
    steps.measure_step(DEV, step, model="m", judge_model="j")
    steps.rebuild_step(DEV, stale, without=out)
    step.refresh_from_db()
    assert (step.state, step.candidate_evaluation) == (StepState.READY, None)
    assert step.candidate_commit == open_repository(step.harness).resolve("step/1")


def test_verdict_of_an_earlier_build_is_not_given_to_the_step() -> None:
    step, out = two_proposals()
    for evaluation in steps.measure_step(DEV, step, model="m", judge_model="j"):
        run(evaluation)
    verdict = steps._make_verdict(step)
    steps.rebuild_step(DEV, step, without=out)
    steps.measure_step(DEV, step, model="m", judge_model="j")
    steps._follow_evaluations(step, verdict)
    assert (step.state, step.verdict) == (StepState.EVALUATING, None)


@pytest.mark.parametrize("end", [promotion.promote, promotion.roll_back])
def test_decided_step_is_not_rebuilt_and_keeps_its_branch(end: Callable[..., object]) -> None:
    step = make_measured_step(teach(*range(1, 21)))
    stale = Step.objects.get(pk=step.pk)
    end(ANNA, step, "so it is")
    with pytest.raises(LoopError, match="is decided"):
        steps.rebuild_step(DEV, stale)
    assert open_repository(step.harness).branches()["step/1"] == step.candidate_commit


def test_rebuild_in_conflict_keeps_the_branch() -> None:
    first = make_measured_step(teach(*range(1, 21)))
    promotion.promote(ANNA, first)
    edit = make_proposal(first.harness, teach(*range(1, 30)))
    step = steps.merge_step(DEV, first.harness, [edit])
    promotion.roll_back_to(ANNA, first.harness, first.harness.releases.get(number=1), "x")
    with pytest.raises(LoopError, match="same lines"):
        steps.rebuild_step(DEV, step)
    step.refresh_from_db()
    assert open_repository(step.harness).branches()["step/2"] == step.candidate_commit


def test_nothing_is_built_on_a_main_that_no_release_names() -> None:
    harness = make_harness()
    proposal = make_proposal(harness, teach(1))
    edit = {"prompts/new.md": b"x\n"}
    open_repository(harness).commit("main", edit, parent="main", author=author_of(DEV), message="by hand")
    with pytest.raises(LoopError, match="no release names"):
        steps.merge_step(DEV, harness, [proposal])


def test_proposal_of_a_rejected_diagnosis_is_not_merged() -> None:
    harness = make_harness()
    proposal = make_proposal(harness, teach(1))
    proposal.diagnosis = Diagnosis.objects.create(
        harness=harness, cluster=make_cluster(harness), state=DiagnosisState.REJECTED
    )
    proposal.save()
    with pytest.raises(LoopError, match="rejected"):
        steps.merge_step(DEV, harness, [proposal])


def test_a_step_keeps_what_it_was_made_of_when_its_proposals_go_on() -> None:
    step = make_measured_step(teach(*range(1, 21)))
    inside = list(step.proposals.all())
    Proposal.objects.filter(step=step).update(step=None)
    assert list(step.merged.all()) == inside != []


def test_what_the_base_lacks_is_made_beside_the_candidate() -> None:
    harness = make_harness()
    make_version(harness)
    base = make_evaluation(harness)
    run(base, answer=lambda system, user: outage()(system, user) if user == "q2" else knows(system, user))
    step = steps.merge_step(DEV, harness, [make_proposal(harness, teach(1, 2, 3))])
    both = steps.measure_step(DEV, step, model="m", judge_model="j")
    assert (both[0], both[1].base) == (base, base)
    assert list_batch(both[1]) == [both[1], both[0]]
    assert both[0].results.count() == 3


def test_proposal_of_a_diagnosis_that_was_dealt_with_otherwise_is_not_merged() -> None:
    harness = make_harness()
    proposal = make_proposal(harness, teach(3))
    cluster = make_cluster(harness)
    proposal.diagnosis = Diagnosis.objects.create(
        harness=harness,
        cluster=cluster,
        part="judge",
        hypothesis="x",
        handled_as="ignored",
        base_commit="1" * 40,
    )
    proposal.save()
    with pytest.raises(LoopError, match="dealt with as no fault of the harness"):
        steps.merge_step(DEV, harness, [proposal])
