import pytest

from evolution.loop.pairs import fill_missing, requeue_failed, requeue_incomplete, stored_pairs
from evolution.loop.shards import claim_shards
from evolution.models import Evaluation
from evolution.states import EvaluationState, ShardState
from tests.evolution.measured import MANY, make_evaluation, make_harness, make_version, run

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation() -> Evaluation:
    """Five shards of eight pairs, all done."""
    harness = make_harness()
    make_version(harness, MANY)
    evaluation = make_evaluation(harness, version=make_version(harness, MANY))
    run(evaluation)
    return evaluation


def queued(evaluation: Evaluation) -> list[int]:
    return list(evaluation.shards.filter(state=ShardState.QUEUED).values_list("number", flat=True))


def test_shards_without_a_result_are_queued(evaluation: Evaluation) -> None:
    assert requeue_incomplete(evaluation) == 0
    shard = evaluation.shards.get(number=3)
    evaluation.results.filter(case=shard.pairs[2][0]).delete()
    assert requeue_incomplete(evaluation) == 1
    assert queued(evaluation) == [3]


def test_failed_pairs_are_thrown_away_and_remember_how_often_they_were_tried(evaluation: Evaluation) -> None:
    case, repeat = evaluation.shards.get(number=2).pairs[1]
    evaluation.results.filter(case=case).update(error_kind="timeout", attempts=2)
    assert requeue_failed(evaluation, ["policy_error"]) == 0
    assert requeue_failed(evaluation, ["policy_error", "timeout"]) == 1
    assert queued(evaluation) == [2]
    assert (case, repeat) not in stored_pairs(evaluation)
    Evaluation.objects.update(state=EvaluationState.RUNNING)
    (held,) = claim_shards(evaluation, 9, "me")
    assert held.missing == {(case, repeat): 2}


def test_errors_of_a_shard_that_somebody_works_on_stay(evaluation: Evaluation) -> None:
    cases = [shard.pairs[0][0] for shard in evaluation.shards.order_by("number")[:2]]
    evaluation.results.filter(case__in=cases).update(error_kind="timeout")
    evaluation.shards.filter(number=1).update(state=ShardState.RUNNING)
    assert requeue_failed(evaluation) == 1
    assert queued(evaluation) == [2]
    assert list(evaluation.results.exclude(error_kind="").values_list("case", flat=True)) == cases[:1]


def test_all_errors_are_meant_where_no_kind_is_named(evaluation: Evaluation) -> None:
    cases = [pair[0] for shard in evaluation.shards.all() for pair in shard.pairs[:1]]
    evaluation.results.filter(case__in=cases).update(error_kind="judge_output")
    assert requeue_failed(evaluation) == 5
    assert queued(evaluation) == [1, 2, 3, 4, 5]


def test_what_is_missing_becomes_errors_but_not_what_somebody_works_on(evaluation: Evaluation) -> None:
    evaluation.results.all().delete()
    evaluation.shards.update(state=ShardState.QUEUED)
    evaluation.shards.filter(number=1).update(state=ShardState.RUNNING)
    assert fill_missing(evaluation, "budget", "nothing is left") == 32
    assert set(evaluation.results.values_list("error_kind", "error")) == {("budget", "nothing is left")}
    assert evaluation.shards.get(number=1).state == ShardState.RUNNING
    assert queued(evaluation) == []


def test_stored_pairs_of_some_cases_are_theirs_alone(evaluation: Evaluation) -> None:
    pairs = [tuple(pair) for pair in evaluation.shards.get(number=4).pairs]
    assert stored_pairs(evaluation, {case for case, _ in pairs}) == set(pairs)
