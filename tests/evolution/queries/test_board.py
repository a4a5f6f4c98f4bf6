import pytest

from evolution.actions.cases import take_failures
from evolution.loop import promotion, steps
from evolution.loop.authors import author_of
from evolution.loop.evaluation import finish_evaluation
from evolution.loop.repositories import open_repository
from evolution.models import Cluster, FailureCase, Harness, Proposal, Step
from evolution.queries import board
from evolution.queries.releases import live_evaluation
from evolution.states import ProposalState
from tests.evolution.measured import (
    ANNA,
    DEV,
    knows,
    make_evaluation,
    make_harness,
    make_measured_step,
    make_proposal,
    make_version,
    outage,
    run,
    teach,
)

pytestmark = pytest.mark.django_db


def page(harness: Harness) -> tuple[object, ...]:
    """Where the next action leads."""
    action = board.next_action(harness)
    return (action.url_name, *action.args) if action else ()


def test_series_has_baseline_and_steps_with_their_decisions() -> None:
    step = make_measured_step(teach(*range(1, 21)))
    promotion.promote(ANNA, step)
    points = board.series(step.harness)
    assert [(p.label, p.decision, p.accuracy, p.step_number) for p in points] == [
        ("baseline", "baseline", 5, None),
        ("step 1", "promoted", 50, 1),
    ]
    assert points[1].commit == step.candidate_commit


def test_version_with_too_many_errors_has_no_score() -> None:
    harness = make_harness()
    make_version(harness)
    step = steps.merge_step(DEV, harness, [make_proposal(harness, teach(1, 2, 3))])
    base, candidate = steps.measure_step(DEV, step, model="m", judge_model="j")
    run(base)
    run(candidate, answer=outage())
    assert [(point.accuracy, point.effectiveness) for point in board.series(harness)] == [
        (50, 75),
        (None, None),
    ]


def test_series_and_tiles_take_the_newest_evaluation_with_scores() -> None:
    harness = make_harness()
    failed, right, again = (make_evaluation(harness, repeats=n) for n in (1, 2, 3))
    run(failed, answer=outage())
    for evaluation in (failed, right, again):
        run(evaluation, answer=outage() if evaluation != right else knows)
        finish_evaluation(evaluation)
    assert [(point.evaluation_id, point.accuracy) for point in board.series(harness)] == [(right.pk, 50)]
    assert live_evaluation(harness) == right


def test_a_version_with_scores_comes_before_an_earlier_one_without() -> None:
    harness = make_harness()
    make_version(harness)
    proposal = make_proposal(harness, teach(1, 2, 3))
    for commit, answer in (("main", outage()), (proposal.head_commit, knows)):
        evaluation = make_evaluation(harness, commit)
        run(evaluation, answer=answer)
        finish_evaluation(evaluation)
    assert [(point.commit, point.accuracy) for point in board.series(harness)] == [(proposal.head_commit, 75)]


def test_main_that_no_release_names_waits_for_an_operator() -> None:
    harness = make_harness()
    assert board.waiting(harness) == []
    edit = {"prompts/a.md": b"x\n"}
    made = open_repository(harness).commit("main", edit, parent="main", author=author_of(DEV), message="m")
    item = board.waiting(harness)[0]
    assert (item.who, item.url_name, made[:8] in item.text) == ("operator", "releases", True)


def test_nothing_is_advised_without_a_measured_version() -> None:
    step = make_measured_step(teach(1))
    promotion.roll_back(DEV, step, "worse")
    assert step.base_evaluation is not None
    step.base_evaluation.results.update(error_kind="policy_error", accuracy=None, effectiveness=None)
    assert page(step.harness) != ("step", 1)


def test_without_a_dataset_there_is_nothing_to_do() -> None:
    assert page(make_harness()) == ()


def test_from_first_measurement_to_clustering() -> None:
    harness = make_harness()
    make_version(harness)
    assert page(harness) == ("evaluations",)
    evaluation = make_evaluation(harness)
    assert page(harness) == ("evaluation", evaluation.pk)
    run(evaluation)
    assert "failures" in str(board.next_action(harness))
    take_failures(DEV, evaluation)
    assert page(harness) == ("clusters",)
    FailureCase.objects.update(embedded_text="x")
    assert page(harness) == ()
    FailureCase.objects.update(cluster=Cluster.objects.create(harness=harness, number=4, name="c"))
    assert page(harness) == ()
    Cluster.objects.get().members.add(*[_failure(harness, n) for n in range(3)])
    assert page(harness) == ("cluster", 4)


def _failure(harness: Harness, number: int) -> FailureCase:
    return FailureCase.objects.create(
        harness=harness, source="x", source_id=str(number), title="t", embedded_text="x"
    )


def test_from_review_to_the_decision() -> None:
    step = make_measured_step(teach(1))
    assert page(step.harness) == ("step", 1)
    assert [(item.who, item.url_name) for item in board.waiting(step.harness)] == [("operator", "step")]
    promotion.revise(DEV, step, "amend it")
    take_failures(DEV, step.base_evaluation)  # type: ignore[arg-type]
    FailureCase.objects.update(embedded_text="x")
    proposal = Proposal.objects.get()
    assert page(step.harness) == ("proposal", proposal.pk)
    assert [item.who for item in board.waiting(step.harness)] == ["developer"]
    Proposal.objects.update(state=ProposalState.CONFIRMED)
    assert page(step.harness) == ("steps",)


def test_stopping_is_advised_and_then_said() -> None:
    step = make_measured_step(teach(1))
    promotion.roll_back(DEV, step, "worse")
    take_failures(DEV, step.base_evaluation)  # type: ignore[arg-type]
    FailureCase.objects.update(embedded_text="x")
    action = board.next_action(step.harness)
    assert action is not None
    assert action.text.startswith("Consider stopping: what still fails has been tried")
    promotion.stop(ANNA, step, "enough")
    step.harness.refresh_from_db()
    assert "stopped" in str(board.next_action(step.harness))


def test_step_under_way_comes_first() -> None:
    harness = make_harness()
    make_version(harness)
    step: Step = steps.merge_step(DEV, harness, [make_proposal(harness, teach(1))])
    assert "Evaluate step 1" in str(board.next_action(harness))
    steps.measure_step(DEV, step, model="m", judge_model="j")
    assert "being evaluated" in str(board.next_action(harness))
