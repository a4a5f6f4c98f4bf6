import threading
from contextlib import closing
from datetime import timedelta

import pytest
from django.db import OperationalError, connection, transaction
from django.utils import timezone

from evolution.loop.kept_calls import Ledger, Spent
from evolution.loop.outcomes import CaseOutcome
from evolution.loop.shards import claim_shards
from evolution.loop.storing import Batch, Finished, forget_receipt, prune_receipts, store_batch
from evolution.loop.usage import RoleUse
from evolution.models import DatasetCase, Evaluation, StoredBatch
from evolution.states import ShardState
from tests.evolution.measured import make_evaluation, make_harness

pytestmark = pytest.mark.django_db

SCORE = CaseOutcome(accuracy=1, effectiveness=0.5, reply="first", reasons={"accuracy": "all “true” 'so'"})
ERROR = CaseOutcome(error_kind="policy_error", error="down")


@pytest.fixture
def evaluation() -> Evaluation:
    return make_evaluation(make_harness())


def cases(evaluation: Evaluation) -> list[DatasetCase]:
    return list(evaluation.dataset_version.cases.order_by("key"))


def store(evaluation: Evaluation, *outcomes: CaseOutcome, attempts: int = 1) -> None:
    """Store the outcomes of as many cases, in one batch."""
    finished = [
        Finished(evaluation.pk, case, 0, attempts, outcome)
        for case, outcome in zip(cases(evaluation), outcomes, strict=False)
    ]
    store_batch(Batch(finished, evaluations=[evaluation.pk]))


def test_every_field_is_stored_as_it_is(evaluation: Evaluation) -> None:
    outcome = CaseOutcome(
        **{**vars(SCORE), "call_ms": [1.5, 2.25], "trajectory": {"turns": [1, None, "\\u0000 'x'"]}}
    )
    store(evaluation, outcome, attempts=3)
    stored = evaluation.results.get()
    assert {name: getattr(stored, name) for name in vars(outcome)} == vars(outcome)
    assert (stored.attempts, stored.case) == (3, cases(evaluation)[0])


def test_second_score_of_a_pair_is_dropped(evaluation: Evaluation) -> None:
    store(evaluation, SCORE)
    store(evaluation, CaseOutcome(accuracy=0, effectiveness=0, reply="second"))
    store(evaluation, ERROR)
    assert evaluation.results.get().reply == "first"


def test_score_takes_the_place_of_an_error(evaluation: Evaluation) -> None:
    store(evaluation, ERROR)
    store(evaluation, SCORE, attempts=2)
    stored = evaluation.results.get()
    assert (stored.error_kind, stored.error, stored.accuracy, stored.attempts) == ("", "", 1, 2)


def test_result_that_cannot_be_stored_is_an_error_beside_the_others(evaluation: Evaluation) -> None:
    for odd in (CaseOutcome(prompt_tokens=-1), CaseOutcome(latency_ms=float("nan")), CaseOutcome(reply="\0")):
        evaluation.results.all().delete()
        store(evaluation, odd, SCORE)
        kinds = evaluation.results.order_by("case__key").values_list("error_kind", "accuracy")
        assert list(kinds) == [("not_stored", None), ("", 1)]


def test_shard_is_ended_with_its_last_result_if_it_is_still_held(evaluation: Evaluation) -> None:
    (shard,) = claim_shards(evaluation, 1, "me")
    store_batch(Batch([], ended=[shard.pk], holder="other", evaluations=[evaluation.pk]))
    assert evaluation.shards.get().state == ShardState.RUNNING
    store_batch(Batch([], ended=[shard.pk], holder="me", evaluations=[evaluation.pk]))
    assert evaluation.shards.get().state == ShardState.DONE


def test_results_of_an_evaluation_that_is_gone_are_dropped(evaluation: Evaluation) -> None:
    one = Finished(evaluation.pk + 1, cases(evaluation)[0], 0, 1, SCORE)
    standings = store_batch(Batch([one], evaluations=[evaluation.pk, evaluation.pk + 1]))
    assert list(standings) == [evaluation.pk]


@pytest.mark.django_db(transaction=True)
def test_batch_whose_commit_nobody_confirmed_is_stored_once(evaluation: Evaluation) -> None:
    one = Finished(evaluation.pk, cases(evaluation)[0], 0, 1, SCORE)
    spent = Spent(usage={"judge": RoleUse("j", made=1)})
    batch = Batch([one], [(Ledger(evaluation), spent)], evaluations=[evaluation.pk])
    # As if the connection had broken before, and then after the commit.
    with transaction.atomic():
        store_batch(batch)
        transaction.set_rollback(True)
    for _ in range(2):
        assert list(store_batch(batch)) == [evaluation.pk]
    assert (evaluation.results.count(), evaluation.usage.get().made) == (1, 1)
    assert not connection.in_atomic_block


@pytest.mark.django_db(transaction=True)
def test_batch_whose_commit_is_still_under_way_elsewhere_is_stored_once(evaluation: Evaluation) -> None:
    """The connection is lost to us, and the server goes on with what it was told."""
    one = Finished(evaluation.pk, cases(evaluation)[0], 0, 1, SCORE)
    batch = Batch([one], [(Ledger(evaluation), Spent(usage={"judge": RoleUse("j", made=1)}))], holder="me")
    batch.evaluations = [evaluation.pk]
    may_commit, has_stored = threading.Event(), threading.Event()

    def store_slowly() -> None:
        with closing(connection), transaction.atomic():
            store_batch(batch)
            has_stored.set()
            may_commit.wait(20)

    other = threading.Thread(target=store_slowly)
    other.start()
    assert has_stored.wait(20)
    with pytest.raises(OperationalError):
        store_batch(batch)
    may_commit.set()
    other.join()
    assert list(store_batch(batch)) == [evaluation.pk]
    assert (evaluation.results.count(), evaluation.usage.get().made) == (1, 1)
    forget_receipt("me")
    assert not StoredBatch.objects.exists()


def test_receipts_of_workers_that_are_long_gone_are_forgotten(evaluation: Evaluation) -> None:
    for holder in ("old", "new"):
        store_batch(Batch([], holder=holder, evaluations=[evaluation.pk]))
    StoredBatch.objects.filter(holder="old").update(stored_at=timezone.now() - timedelta(days=2))
    prune_receipts()
    assert [receipt.holder for receipt in StoredBatch.objects.all()] == ["new"]
