import pytest

from evolution.actions.evaluations import cancel_evaluation
from evolution.actions.proposal_evaluation import evaluate_proposal
from evolution.actors import NotAllowed
from evolution.errors import LoopError
from evolution.loop.steps import settle_steps
from evolution.models import Evaluation, Event, Proposal
from evolution.queries.alone import read_alone
from evolution.states import EvaluationState
from tests.evolution.measured import DEV, MANY, VIEWER, make_harness, make_proposal, make_version, run, teach

pytestmark = pytest.mark.django_db


@pytest.fixture
def proposal() -> Proposal:
    """One that teaches q3 and q4 to an agent that knows q1 and q2, and forgets q2."""
    harness = make_harness()
    make_version(harness, MANY[:8])
    made = make_proposal(harness, teach(1, 3, 4))
    made.manifest = {"expected_keys": ["q3"], "at_risk": ["q1", "q2"], "at_risk_total": 2, "measured_on": 1}
    made.save(update_fields=["manifest"])
    return made


def evaluate(proposal: Proposal) -> list[Evaluation]:
    """Evaluate it, and work on both evaluations here."""
    both = evaluate_proposal(DEV, proposal, enqueue=False)
    for evaluation in both:
        run(evaluation)
        settle_steps(evaluation)
    proposal.refresh_from_db()
    return both


def test_a_proposal_is_measured_alone_against_the_base_of_its_branch(proposal: Proposal) -> None:
    base, candidate = evaluate(proposal)

    assert (base.commit, candidate.commit) == (proposal.base_commit, proposal.head_commit)
    alone = read_alone(proposal)
    assert {flip: n for flip, n in alone.counts.items() if flip in {"fixed", "broken"}} == {
        "fixed": 2,
        "broken": 1,
    }
    assert alone.figures is not None
    accuracy = alone.figures.metrics[0].compared
    assert accuracy is not None
    assert accuracy.delta == pytest.approx(1 / 8)
    assert (alone.is_running, alone.may_start, alone.is_outdated) == (False, False, False)


def test_its_predictions_are_scored_as_soon_as_it_is_measured(proposal: Proposal) -> None:
    evaluate(proposal)

    score = proposal.prediction["alone"]
    assert score["fixes"] == {"predicted": 1, "happened": 2, "hits": 1, "possible": 6}
    assert score["regressions"] == {"predicted": 2, "happened": 1, "hits": 1, "possible": 2}
    assert score["commit"] == proposal.head_commit


def test_asking_again_takes_what_is_measured_and_leaves_no_second_trace(proposal: Proposal) -> None:
    first = evaluate(proposal)
    events = Event.objects.count()

    assert evaluate_proposal(DEV, proposal, enqueue=False) == first
    assert Event.objects.count() == events


def test_a_cancelled_one_can_be_evaluated_again(proposal: Proposal) -> None:
    base, candidate = evaluate_proposal(DEV, proposal, enqueue=False)
    run(base)
    cancel_evaluation(DEV, candidate)
    proposal.refresh_from_db()
    alone = read_alone(proposal)
    assert (alone.is_running, alone.may_start, alone.figures) == (False, True, None)

    again = evaluate_proposal(DEV, proposal, enqueue=False)

    assert {one.state for one in again} <= {EvaluationState.FINISHED, EvaluationState.QUEUED}


def test_figures_of_an_earlier_version_are_said_to_be_that(proposal: Proposal) -> None:
    evaluate(proposal)
    proposal.head_commit = "f" * 40

    alone = read_alone(proposal)

    assert (alone.is_outdated, alone.may_start) == (True, True)


def test_a_viewer_evaluates_nothing(proposal: Proposal) -> None:
    with pytest.raises(NotAllowed):
        evaluate_proposal(VIEWER, proposal)
    assert not Evaluation.objects.exists()


@pytest.mark.parametrize("state", ["rejected", "drafting", "failed", "released"])
def test_what_has_no_change_under_review_is_not_evaluated(proposal: Proposal, state: str) -> None:
    Proposal.objects.update(state=state)

    with pytest.raises(LoopError):
        evaluate_proposal(DEV, proposal)
    assert not Evaluation.objects.exists()
