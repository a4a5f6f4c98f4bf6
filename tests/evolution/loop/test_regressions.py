import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from evolution.loop import regressions
from evolution.loop.flips import Flip, flip_case
from evolution.loop.regressions import merge_repeats
from evolution.loop.verdict import Policy
from evolution.models import Verdict
from evolution.states import Outcome
from tests.evolution.measured import make_evaluation, make_harness, make_proposal, outage, run, teach

pytestmark = pytest.mark.django_db


def test_flips_of_two_evaluations_by_case() -> None:
    harness = make_harness()
    base = make_evaluation(harness)
    candidate = make_evaluation(harness, make_proposal(harness, teach(2, 3)).head_commit)
    run(base)
    run(candidate)
    flips = {pair.key: flip_case(pair) for pair in regressions.load_pairs(base, candidate)}
    assert flips == {"q1": Flip.BROKEN, "q2": Flip.STILL_PASSING, "q3": Flip.FIXED, "q4": Flip.STILL_FAILING}


def test_flips_take_as_many_queries_whatever_the_cases() -> None:
    harness = make_harness()
    base = make_evaluation(harness)
    run(base)
    with CaptureQueriesContext(connection) as queries:
        pairs = regressions.load_pairs(base, base)
    assert len(pairs) == 4
    # The results and the cases of each, and the version that they are of.
    assert len(queries) <= 5


def test_repeats_are_averaged_within_the_case() -> None:
    scores = merge_repeats([(1, 1), (0, 0.5), (1, 1), (1, 0.5)], repeats=4)
    assert (scores.accuracy, scores.effectiveness, scores.passes) == (0.75, 0.75, 2)
    assert not scores.is_passing


def test_case_with_an_error_in_one_repeat_has_no_score() -> None:
    scores = merge_repeats([(1, 1), (None, None)], repeats=2)
    assert (scores.is_scored, scores.errors) == (False, 1)


@pytest.mark.parametrize("state", ["queued", "running", "cancelled"])
def test_evaluation_that_did_not_end_is_not_comparable(state: str) -> None:
    evaluation = make_evaluation(make_harness())
    run(evaluation)
    evaluation.state = state
    figures = regressions.weigh(evaluation, evaluation, Policy(resamples=199))
    assert "unfinished" in [reason.code for reason in figures.reasons]


def test_verdict_is_stored_once_with_its_figures_and_can_be_made_again() -> None:
    harness = make_harness()
    base = make_evaluation(harness)
    candidate = make_evaluation(harness, make_proposal(harness, teach(1)).head_commit)
    run(base)
    run(candidate)
    first = regressions.store_verdict(base, candidate)
    again = regressions.store_verdict(base, candidate)
    assert Verdict.objects.get() == first == again
    assert again.figures == first.figures
    assert (first.figures["broken"], first.outcome) == (["q2"], Outcome.INCONCLUSIVE)
    assert first.policy["alpha"] == 0.05


def test_policy_of_the_harness_is_in_force() -> None:
    harness = make_harness()
    harness.policy = {"coverage": 0.2, "resamples": 199}
    harness.save()
    base = make_evaluation(harness)
    run(base, answer=lambda system, user: outage()(system, user) if user != "q1" else "right")
    figures = regressions.weigh(base, base, Policy.from_dict(base.harness.policy))
    assert figures.comparable
    assert regressions.weigh(base, base, Policy()).reasons[0].code == "coverage"
