from datetime import timedelta

import pytest
from django.utils import timezone

from evolution.loop import shards
from evolution.loop.evaluation import build_scorer, cancel_evaluation, finish_evaluation
from evolution.loop.scoring import CaseOutcome
from evolution.models import Evaluation, EvaluationShard
from evolution.ports import NamedModel
from evolution.states import EvaluationState, ShardState
from tests.evolution.measured import (
    DEV,
    FakeModel,
    judge_reply,
    knows,
    make_evaluation,
    make_harness,
    run,
)

pytestmark = pytest.mark.django_db


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation(make_harness())


def claim(evaluation: Evaluation) -> EvaluationShard:
    shard = shards.claim_shard(evaluation.shards.get().pk)
    assert shard is not None
    return shard


def expire(shard: EvaluationShard) -> None:
    EvaluationShard.objects.filter(pk=shard.pk).update(lease_until=timezone.now() - timedelta(seconds=1))


def test_claimed_shard_is_not_claimed_again(evaluation: Evaluation) -> None:
    shard = claim(evaluation)
    assert shards.claim_shard(shard.pk) is None
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.RUNNING


def test_shard_whose_lease_ended_is_taken_over(evaluation: Evaluation) -> None:
    first = claim(evaluation)
    expire(first)
    second = claim(evaluation)
    assert second.holder != first.holder
    with pytest.raises(shards.LeaseLostError):
        shards.renew_lease(first)
    shards.renew_lease(second)


def test_work_of_a_killed_worker_is_neither_lost_nor_doubled(evaluation: Evaluation) -> None:
    shard = claim(evaluation)
    done = evaluation.dataset_version.cases.get(key="q1")
    shards.store_outcomes(shard, [(done, 0, CaseOutcome(accuracy=1, effectiveness=1, reply="first"))])
    expire(shard)
    assert sorted(run(evaluation).asked) == ["q2", "q3", "q4"]
    assert evaluation.results.get(case=done).reply == "first"
    assert evaluation.results.count() == 4


def test_second_result_of_a_pair_is_dropped(evaluation: Evaluation) -> None:
    shard = claim(evaluation)
    case = evaluation.dataset_version.cases.get(key="q1")
    for reply in ("first", "second"):
        shards.store_outcomes(shard, [(case, 0, CaseOutcome(accuracy=1, effectiveness=1, reply=reply))])
    assert evaluation.results.get().reply == "first"


def test_cancelled_evaluation_stops_its_worker_and_frees_the_shard(evaluation: Evaluation) -> None:
    shard = claim(evaluation)
    scorer = build_scorer(
        evaluation, NamedModel(FakeModel(knows), "m"), NamedModel(FakeModel(judge_reply), "j")
    )
    cancel_evaluation(DEV, shard.evaluation)
    assert not shards.work_shard(shard, scorer)
    shard.refresh_from_db()
    assert (shard.state, shard.holder, shard.attempts) == (ShardState.QUEUED, "", 0)


def test_interrupted_worker_frees_the_shard(evaluation: Evaluation) -> None:
    shard = claim(evaluation)

    def interrupt(_system: str, _user: str) -> str:
        raise KeyboardInterrupt

    scorer = build_scorer(
        evaluation, NamedModel(FakeModel(interrupt), "m"), NamedModel(FakeModel(judge_reply), "j")
    )
    with pytest.raises(KeyboardInterrupt):
        shards.work_shard(shard, scorer)
    shard.refresh_from_db()
    assert shard.state == ShardState.QUEUED


def test_result_that_cannot_be_stored_is_an_error_beside_the_others(evaluation: Evaluation) -> None:
    shard = claim(evaluation)
    one, two = evaluation.dataset_version.cases.order_by("key")[:2]
    odd = CaseOutcome(accuracy=1, effectiveness=1, prompt_tokens=-1)
    shards.store_outcomes(shard, [(one, 0, odd), (two, 0, CaseOutcome(accuracy=1, effectiveness=1))])
    kinds = evaluation.results.order_by("case__key").values_list("error_kind", "accuracy")
    assert list(kinds) == [("not_stored", None), ("", 1)]


def test_shard_that_fails_again_and_again_ends_with_the_reason(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def fail(*_: object) -> CaseOutcome:
        raise RuntimeError("no such thing")

    monkeypatch.setattr(shards, "score_case", fail)
    scorer = build_scorer(
        evaluation, NamedModel(FakeModel(knows), "m"), NamedModel(FakeModel(judge_reply), "j")
    )
    for _ in range(shards.MOST_ATTEMPTS - 1):
        with pytest.raises(ExceptionGroup):
            shards.work_shard(claim(evaluation), scorer)
    assert shards.work_shard(claim(evaluation), scorer)
    assert finish_evaluation(evaluation)
    kinds = set(evaluation.results.values_list("error_kind", "error"))
    assert kinds == {("worker_lost", "given up after 5 attempts: RuntimeError('no such thing')")}


def test_abandoned_shards_are_collected(evaluation: Evaluation) -> None:
    now = timezone.now()
    assert shards.collect_abandoned(now) == []
    later = now + timedelta(minutes=1)
    assert shards.collect_abandoned(later) == [evaluation.shards.get().pk]
    assert shards.collect_abandoned(later) == []
    shard = claim(evaluation)
    assert shards.collect_abandoned(timezone.now() + timedelta(minutes=1)) == [shard.pk]


def test_shard_that_kills_its_workers_ends_with_errors(evaluation: Evaluation) -> None:
    for _ in range(shards.MOST_ATTEMPTS):
        shard = claim(evaluation)
        expire(shard)
    assert shards.collect_abandoned(timezone.now()) == []
    assert finish_evaluation(evaluation)
    assert set(evaluation.results.values_list("error_kind", flat=True)) == {"worker_lost"}
