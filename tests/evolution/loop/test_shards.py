from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from evolution.loop import shards
from evolution.loop.evaluation import (
    cancel_evaluation,
    finish_evaluation,
    is_standing_still,
    resume_evaluation,
)
from evolution.loop.outcomes import CaseOutcome
from evolution.loop.shards import HeldShard, claim_shards, claim_together
from evolution.loop.storing import Batch, Finished, show_life, store_batch
from evolution.models import Evaluation, EvaluationShard
from evolution.states import EvaluationState, ShardState
from tests.evolution.measured import DEV, MANY, make_evaluation, make_harness, make_version, outage, run

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


def test_same_cases_of_what_is_compared_are_taken_by_the_same_worker() -> None:
    """So identical calls meet in one process, and are made once."""
    harness = make_harness()
    version = make_version(harness, MANY)
    base = make_evaluation(harness, version=version)
    candidate = make_evaluation(harness, version=version, base=base, is_fresh=True)
    candidate.shards.filter(number=2).update(state=ShardState.DONE)
    for holder, numbers in (("one", [1, 2, 3, 1, 3]), ("two", [4, 5, 4, 5])):
        taken = claim_together([base, candidate], 3, holder, [])
        assert [shard.number for shard in taken] == numbers
        sides = [
            {pair for shard in taken if shard.evaluation_id == one.pk for pair in shard.missing}
            for one in (base, candidate)
        ]
        assert sides[1] <= sides[0]


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
    evaluation.refresh_from_db()
    # That tasks were sent is no sign of life.
    assert is_standing_still(evaluation, later)
    claim(evaluation)
    assert shards.collect_abandoned(timezone.now() + timedelta(minutes=1)) == {evaluation.pk: 1}


def test_shard_that_kills_its_workers_ends_with_errors(evaluation: Evaluation) -> None:
    deaths = 0
    while claim_shards(evaluation, 9, f"worker {deaths}"):
        expire()
        deaths += 1
    # Three with all that is in it, and two more for each of its four pairs.
    assert deaths == 3 + 2 * 4
    assert not shards.collect_abandoned(timezone.now())
    assert finish_evaluation(evaluation)
    assert set(evaluation.results.values_list("error_kind", flat=True)) == {"worker_lost"}


def test_shard_whose_workers_failed_too_often_is_not_taken_again(evaluation: Evaluation) -> None:
    for number in range(shards.MOST_ATTEMPTS):
        shards.release_shards([claim(evaluation, f"worker {number}").pk], f"worker {number}")
    assert claim_shards(evaluation, 9, "one more") == []
    assert not shards.has_work([evaluation.pk])
    shards.collect_abandoned(timezone.now())
    assert finish_evaluation(evaluation)
    assert set(evaluation.results.values_list("error_kind", flat=True)) == {"worker_lost"}


def die(evaluation: Evaluation, holder: str) -> list[list[list[int]]]:
    """Take what there is, and never come back; returns the pairs of each shard that was taken."""
    taken = [sorted(shard.missing) for shard in claim_shards(evaluation, 9, holder)]
    expire()
    return [[list(pair) for pair in pairs] for pairs in taken]


def test_case_that_kills_its_worker_takes_no_other_with_it() -> None:
    """Whoever has it among what it holds dies; whoever has not stores what it holds."""
    harness = make_harness()
    evaluation = make_evaluation(harness, version=make_version(harness, MANY))
    deadly = evaluation.dataset_version.cases.get(key="q20").pk
    deaths = 0
    for number in range(100):
        held = claim_shards(evaluation, 3, f"worker {number}")
        if any((deadly, 0) in shard.missing for shard in held):
            deaths += 1
            expire()
            continue
        for shard in held:
            finished = [
                Finished(evaluation.pk, case, 0, 1, CaseOutcome(accuracy=1)) for case in shard.cases.values()
            ]
            store_batch(Batch(finished, (), [shard.pk], f"worker {number}", [evaluation.pk]))
    shards.collect_abandoned(timezone.now())
    assert finish_evaluation(evaluation)
    assert deaths == shards.MOST_ATTEMPTS
    assert list(evaluation.results.exclude(error_kind="").values_list("case", "error_kind")) == [
        (deadly, "worker_lost")
    ]
    assert evaluation.results.count() == 40


def test_deadly_shard_is_taken_last_and_alone_and_its_pairs_each_by_itself() -> None:
    harness = make_harness()
    evaluation = make_evaluation(harness, version=make_version(harness, MANY))
    for holder in ("one", "two"):
        assert len(die(evaluation, holder)) == 5
    evaluation.shards.filter(number__gt=1).update(deaths=0)
    first = evaluation.shards.get(number=1)
    held = [shard.pk for shard in claim_shards(evaluation, 9, "three")]
    assert first.pk not in held
    assert claim_shards(evaluation, 9, "three", held) == []
    assert die(evaluation, "four") == [sorted(first.pairs)]
    evaluation.shards.filter(number__in=range(2, 6)).update(state=ShardState.DONE)
    taken = [die(evaluation, f"five {number}") for number in range(2 * 8)]
    assert taken[::2] == taken[1::2] == [[[pair]] for pair in first.pairs]


def test_connection_that_broke_at_a_claim_is_no_death(evaluation: Evaluation) -> None:
    for _ in range(9):
        claim_shards(evaluation, 9, "me", [])
    assert (evaluation.shards.get().attempts, evaluation.shards.get().deaths) == (1, 0)


def test_heartbeat_is_the_database_s_time_whatever_the_machine_says(
    evaluation: Evaluation, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(timezone, "now", lambda: datetime(2001, 1, 1, tzinfo=UTC))
    claim(evaluation)
    evaluation.refresh_from_db()
    assert evaluation.started_at is not None
    assert evaluation.started_at.year > 2001
    assert evaluation.heartbeat_at == evaluation.started_at
    show_life([evaluation.pk], [])
    evaluation.refresh_from_db()
    assert evaluation.heartbeat_at > evaluation.started_at
    assert 0 < evaluation.running_seconds < 30


def test_resumed_evaluation_has_no_sign_of_life_yet_and_is_given_time(evaluation: Evaluation) -> None:
    run(evaluation, outage())
    Evaluation.objects.update(created_at=timezone.now() - timedelta(days=1))
    evaluation.refresh_from_db()
    resume_evaluation(DEV, evaluation)
    evaluation.refresh_from_db()
    now = timezone.now()
    assert evaluation.heartbeat_at is None
    assert not is_standing_still(evaluation, now)
    assert is_standing_still(evaluation, now + timedelta(minutes=1))


def test_nothing_is_queued_of_an_evaluation_that_has_ended(evaluation: Evaluation) -> None:
    assert shards.count_queued(evaluation.pk) == 1
    run(evaluation)
    assert shards.count_queued(evaluation.pk) == 0
