from datetime import timedelta

import pytest
from django.utils import timezone

from evolution.loop import shards
from evolution.loop.evaluation import cancel_evaluation, finish_evaluation
from evolution.loop.outcomes import CaseOutcome
from evolution.loop.shards import HeldShard, claim_shards
from evolution.loop.storing import Batch, Finished, store_batch
from evolution.models import Evaluation, EvaluationShard
from evolution.states import EvaluationState, ShardState
from tests.evolution.measured import DEV, MANY, make_evaluation, make_harness, make_version, run

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def _database_is_up_for_long(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shards, "grace", timedelta)


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation(make_harness())


def claim(evaluation: Evaluation, holder: str = "me") -> HeldShard:
    (shard,) = claim_shards(evaluation, 9, holder)
    return shard


def expire() -> None:
    EvaluationShard.objects.update(lease_until=timezone.now() - timedelta(seconds=1))


def test_claimed_shard_is_not_claimed_again(evaluation: Evaluation) -> None:
    claim(evaluation)
    assert claim_shards(evaluation, 9, "other") == []
    evaluation.refresh_from_db()
    assert evaluation.state == EvaluationState.RUNNING


def test_shards_are_claimed_in_order_as_many_as_are_wanted() -> None:
    harness = make_harness()
    version = make_version(harness, MANY)
    evaluation = make_evaluation(harness, version=version)
    assert evaluation.shards.count() == 5
    first, second = claim_shards(evaluation, 2, "me"), claim_shards(evaluation, 9, "other")
    numbers = [EvaluationShard.objects.get(pk=shard.pk).number for shard in (*first, *second)]
    assert numbers == [1, 2, 3, 4, 5]
    assert {len(shard.missing) for shard in first} == {8}


def test_shard_whose_lease_ended_is_taken_over(evaluation: Evaluation) -> None:
    first = claim(evaluation)
    expire()
    second = claim(evaluation, "other")
    assert shards.renew_leases([first.pk], "me") == set()
    assert shards.renew_leases([second.pk], "other") == {second.pk}


def test_only_pairs_without_a_result_are_to_be_made(evaluation: Evaluation) -> None:
    shard = claim(evaluation)
    done = next(iter(shard.cases.values()))
    store_batch(
        Batch([Finished(evaluation.pk, done, 0, 1, CaseOutcome(accuracy=1))], evaluations=[evaluation.pk])
    )
    expire()
    assert set(claim(evaluation, "other").missing) == set(shard.missing) - {(done.pk, 0)}


def test_nothing_is_claimed_of_an_evaluation_that_is_cancelled_or_has_used_up_its_budget(
    evaluation: Evaluation,
) -> None:
    Evaluation.objects.update(stopped_by="calls")
    assert claim_shards(evaluation, 9, "me") == []
    Evaluation.objects.update(stopped_by="")
    cancel_evaluation(DEV, evaluation)
    assert claim_shards(evaluation, 9, "me") == []


def test_released_shard_is_free_at_once_and_an_orderly_end_costs_it_nothing(evaluation: Evaluation) -> None:
    shard = claim(evaluation)
    shards.release_shards([shard.pk], "other")
    assert evaluation.shards.get().state == ShardState.RUNNING
    shards.release_shards([shard.pk], "me", given_back=1)
    stored = evaluation.shards.get()
    assert (stored.state, stored.holder, stored.attempts) == (ShardState.QUEUED, "", 0)


def test_shard_that_was_taken_when_the_connection_broke_is_taken_by_its_holder(
    evaluation: Evaluation,
) -> None:
    shard = claim(evaluation)
    assert claim_shards(evaluation, 9, "me", [shard.pk]) == []
    assert claim_shards(evaluation, 9, "other") == []
    assert [again.pk for again in claim_shards(evaluation, 9, "me", [])] == [shard.pk]


def test_lease_that_ended_while_the_database_was_away_can_still_be_renewed(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = claim(evaluation)
    expire()
    monkeypatch.setattr(shards, "grace", lambda: timedelta(days=365))
    assert claim_shards(evaluation, 9, "other") == []
    assert not shards.collect_abandoned(timezone.now() + timedelta(hours=1))
    assert shards.renew_leases([first.pk], "me") == {first.pk}


def test_abandoned_shards_are_collected(evaluation: Evaluation) -> None:
    now = timezone.now()
    assert not shards.collect_abandoned(now)
    later = now + timedelta(minutes=1)
    assert shards.collect_abandoned(later) == {evaluation.pk: 1}
    assert not shards.collect_abandoned(later)
    claim(evaluation)
    assert shards.collect_abandoned(timezone.now() + timedelta(minutes=1)) == {evaluation.pk: 1}


def test_shard_that_kills_its_workers_ends_with_errors(evaluation: Evaluation) -> None:
    for number in range(shards.MOST_ATTEMPTS):
        claim(evaluation, f"worker {number}")
        expire()
    assert claim_shards(evaluation, 9, "one more") == []
    assert not shards.collect_abandoned(timezone.now())
    assert finish_evaluation(evaluation)
    assert set(evaluation.results.values_list("error_kind", flat=True)) == {"worker_lost"}


def test_nothing_is_queued_of_an_evaluation_that_has_ended(evaluation: Evaluation) -> None:
    assert shards.count_queued(evaluation.pk) == 1
    run(evaluation)
    assert shards.count_queued(evaluation.pk) == 0
