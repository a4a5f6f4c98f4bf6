import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psycopg
import pytest
from django.db import connection, transaction
from pytest_django import Settings

from evolution.errors import LoopError
from evolution.loop import batches
from evolution.loop import engine as loop
from evolution.loop.batches import give_up_starts, work_batch
from evolution.loop.engine import Engine
from evolution.loop.evaluation import (
    build_scorer,
    cancel_evaluation,
    create_evaluation,
    list_batch,
    resume_evaluation,
)
from evolution.loop.kept_calls import Ledger
from evolution.loop.outcomes import CaseOutcome
from evolution.loop.scoring import Scorer, score_case
from evolution.loop.shards import ALONE_AFTER, MOST_ATTEMPTS, claim_shards
from evolution.models import Evaluation
from evolution.ports import NamedModel
from evolution.states import EvaluationState, ShardState
from harness_repo.runtime.chat import ChatReply, ChatRequest
from tests.evolution.measured import (
    DEV,
    MANY,
    FakeModel,
    judge_reply,
    knows,
    make_evaluation,
    make_harness,
    make_version,
    outage,
    run,
)

pytestmark = pytest.mark.django_db


class SlowModel(FakeModel):
    """Takes its time, and counts who is at it at once."""

    def __init__(self, seconds: float) -> None:
        super().__init__(knows)
        self.seconds = seconds
        self.at_once = self.most_at_once = 0
        self.cut_off = 0

    async def complete(self, request: ChatRequest) -> ChatReply:
        self.at_once += 1
        self.most_at_once = max(self.most_at_once, self.at_once)
        try:
            await asyncio.sleep(self.seconds)
        except asyncio.CancelledError:
            self.cut_off += 1
            raise
        finally:
            self.at_once -= 1
        return await super().complete(request)


def score_with(policy: FakeModel, judge: Callable[[str, str], str] = judge_reply) -> loop.BuildScorer:
    """What builds scorers whose models are counted and kept, as tasks build them."""

    def build(evaluation: Evaluation) -> Scorer:
        ledger = Ledger(evaluation)
        models = (NamedModel(policy, "m"), NamedModel(FakeModel(judge), "j"))
        scorer = build_scorer(evaluation, ledger.wrap("policy", models[0]), ledger.wrap("judge", models[1]))
        return Scorer(**{**vars(scorer), "ledger": ledger})

    return build


def make_large(**options: Any) -> Evaluation:
    harness = make_harness()
    return make_evaluation(harness, version=make_version(harness, MANY), **options)


def test_all_shards_are_pulled_and_no_more_cases_are_under_way_than_may_be() -> None:
    evaluation = make_large(concurrency=5)
    policy = SlowModel(0.01)
    work_batch([evaluation], score_with(policy))
    assert policy.most_at_once == 5
    assert evaluation.state == EvaluationState.FINISHED
    assert evaluation.results.count() == len(policy.asked) == 40


def test_calls_are_counted_and_kept_with_the_results() -> None:
    evaluation = make_large()
    work_batch([evaluation], score_with(FakeModel(knows)))
    used = dict(evaluation.usage.values_list("role", "made"))
    assert used["policy"] == 40
    again = create_evaluation(
        DEV, evaluation.harness, "main", evaluation.dataset_version, model="m", judge_model="j", is_fresh=True
    )
    Evaluation.objects.filter(pk=again.pk).update(is_fresh=False)
    again.refresh_from_db()
    policy = FakeModel(knows)
    work_batch([again], score_with(policy))
    assert policy.asked == []
    assert again.results.count() == 40


def test_cancelled_evaluation_cuts_off_what_is_under_way(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LOOK", 0.05)
    evaluation = make_large(concurrency=40)
    policy = SlowModel(60)

    def cancel() -> bool:
        running = Evaluation.objects.filter(state=EvaluationState.RUNNING).first()
        if running is not None and policy.at_once == 40:
            cancel_evaluation(DEV, running)
        return False

    began = time.monotonic()
    Engine([evaluation], score_with(policy), is_wanted_elsewhere=cancel).work()
    assert time.monotonic() - began < 10
    assert policy.cut_off == 40
    assert evaluation.results.count() == 0
    assert set(evaluation.shards.values_list("state", "attempts")) == {(ShardState.QUEUED, 0)}


def test_what_waits_is_left_to_others_when_the_process_is_wanted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LOOK", 0.01)
    evaluation = make_large(concurrency=2)
    policy = SlowModel(0.1)
    engine = Engine([evaluation], score_with(policy), is_wanted_elsewhere=lambda: True)
    engine.work()
    assert engine.has_given_way
    # What was under way is not lost.
    assert evaluation.results.count() == len(policy.asked) <= 4
    assert not evaluation.shards.filter(state=ShardState.RUNNING).exists()
    work_batch([evaluation], score_with(policy))
    assert Counter(policy.asked) == Counter(case.key for case in MANY)


def test_process_that_ends_stops_what_is_under_way() -> None:
    evaluation = make_large()
    Engine([evaluation], score_with(SlowModel(60)), is_stopping=lambda: True).work()
    assert set(evaluation.shards.values_list("state", "attempts")) == {(ShardState.QUEUED, 0)}


def test_interrupted_worker_frees_its_shards() -> None:
    evaluation = make_large()

    def interrupt(_system: str, _user: str) -> str:
        raise KeyboardInterrupt

    with suppress(KeyboardInterrupt):
        Engine([evaluation], score_with(FakeModel(interrupt))).work()
        pytest.fail("was not interrupted")
    assert set(evaluation.shards.values_list("state", "attempts")) == {(ShardState.QUEUED, 0)}


def test_failure_of_the_worker_itself_costs_its_shards_an_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such thing")

    evaluation = make_large()
    monkeypatch.setattr(loop, "store_batch", fail)
    with pytest.raises(RuntimeError, match="no such thing"):
        Engine([evaluation], score_with(FakeModel(knows))).work()
    assert set(evaluation.shards.values_list("state", "attempts")) >= {(ShardState.QUEUED, 1)}


def test_failure_that_stays_ends_the_evaluation_and_is_not_paid_for_for_ever(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("no such thing")

    evaluation = make_evaluation(make_harness())
    policy = FakeModel(knows)
    with monkeypatch.context() as patched:
        patched.setattr(loop, "store_batch", fail)
        for _ in range(MOST_ATTEMPTS):
            with pytest.raises(RuntimeError):
                Engine([evaluation], score_with(policy)).work()
        Engine([evaluation], score_with(policy)).work()
    assert len(policy.asked) == 4 * MOST_ATTEMPTS
    work_batch([evaluation], score_with(policy))
    assert evaluation.state == EvaluationState.PARTIAL
    assert set(evaluation.results.values_list("error_kind", flat=True)) == {"worker_lost"}


def refuse(evaluation: Evaluation) -> Scorer:
    """What a machine builds that lacks a setting."""
    raise LoopError(f"no endpoint for {evaluation}")


def test_what_cannot_be_started_here_is_left_to_others() -> None:
    evaluation = make_large()
    engine = Engine([evaluation], refuse)
    engine.work()
    assert engine.obstacles == {evaluation.pk: f"no endpoint for {evaluation}"}
    assert evaluation.results.count() == 0
    assert set(evaluation.shards.values_list("state", "attempts")) == {(ShardState.QUEUED, 0)}
    work_batch([evaluation], score_with(FakeModel(knows)))
    assert evaluation.state == EvaluationState.FINISHED


def test_what_nobody_can_start_ends_with_the_reason(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(batches, "PAUSE", 0)
    evaluation = make_large()
    work_batch([evaluation], refuse)
    assert evaluation.state == EvaluationState.PARTIAL
    said = set(evaluation.results.values_list("error_kind", "error"))
    assert said == {("not_started", f"no endpoint for {evaluation}")}


def test_what_cannot_be_started_here_is_not_given_up_while_others_are_at_it() -> None:
    evaluation = make_large()
    assert claim_shards(evaluation, 1, "other")
    engine = Engine([evaluation], refuse)
    engine.work()
    give_up_starts([evaluation], engine)
    assert evaluation.results.count() == 0


def test_progress_is_told_at_the_end_and_with_nothing_to_do() -> None:
    told: list[int] = []
    evaluation = make_large()
    work_batch([], score_with(FakeModel(knows)), lambda: told.append(-1))
    work_batch([evaluation], score_with(FakeModel(knows)), lambda: told.append(evaluation.results.count()))
    assert (told[0], told[-1]) == (-1, 40)


def test_what_was_cancelled_is_left_to_others_and_taken_up_again_when_it_is_resumed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop, "LOOK", 0.02)
    base = make_large(concurrency=2)
    candidate = make_evaluation(
        base.harness, version=base.dataset_version, base=base, is_fresh=True, concurrency=2
    )
    done: list[str] = []

    def interfere() -> bool:
        one = Evaluation.objects.get(pk=candidate.pk)
        if not done and one.results.exists():
            cancel_evaluation(DEV, one)
            done.append("cancelled")
        elif done == ["cancelled"] and not one.shards.filter(state=ShardState.RUNNING).exists():
            resume_evaluation(DEV, one)
            done.append("resumed")
        return False

    Engine(list_batch(base), score_with(SlowModel(0.05)), is_wanted_elsewhere=interfere).work()
    assert done == ["cancelled", "resumed"]
    assert (base.results.count(), candidate.results.filter(error_kind="").count()) == (40, 40)


def test_deleted_evaluation_takes_no_other_with_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(loop, "LOOK", 0.02)
    base = make_large(concurrency=2)
    candidate = make_evaluation(base.harness, version=base.dataset_version, base=base, is_fresh=True)

    def delete() -> bool:
        if Evaluation.objects.get(pk=base.pk).results.exists():
            Evaluation.objects.filter(pk=candidate.pk).delete()
        return False

    batch = list_batch(base)
    Engine(batch, score_with(SlowModel(0.02)), is_wanted_elsewhere=delete).work()
    work_batch(batch, score_with(FakeModel(knows)))
    base.refresh_from_db()
    assert (base.state, base.results.count()) == (EvaluationState.FINISHED, 40)


def test_shard_that_was_deadly_is_worked_on_alone() -> None:
    evaluation = make_large()
    evaluation.shards.filter(number__in=(1, 3)).update(deaths=ALONE_AFTER)
    held: set[tuple[int, ...]] = set()
    engine = Engine([evaluation], score_with(SlowModel(0.01)), on_stored=lambda: held.add(tuple(engine.held)))
    engine.work()
    # It has not ended before they were done, too: nobody may come after it.
    assert evaluation.results.count() == 40
    deadly = set(evaluation.shards.filter(number__in=(1, 3)).values_list("pk", flat=True))
    assert not [together for together in held if deadly & set(together) and len(together) > 1]


def test_case_that_cannot_be_scored_is_an_error_beside_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(case: object, scorer: Scorer, repeat: int = 0) -> CaseOutcome:
        if getattr(case, "key", "") == "q2":
            raise RuntimeError("no such thing")
        return await score_case(case, scorer, repeat)  # type: ignore[arg-type]

    monkeypatch.setattr(loop, "score_case", fail)
    evaluation = make_evaluation(make_harness())
    run(evaluation)
    stored = evaluation.results.get(case__key="q2")
    assert (stored.error_kind, stored.error) == ("case_error", "RuntimeError: no such thing")
    assert evaluation.results.filter(error_kind="").count() == 3


def test_base_and_candidate_are_worked_on_side_by_side() -> None:
    harness = make_harness()
    version = make_version(harness, MANY)
    base = make_evaluation(harness, version=version, concurrency=4)
    policy = SlowModel(0.01)
    candidate = make_evaluation(harness, version=version, repeats=2, concurrency=4, base=base, is_fresh=True)
    assert list_batch(candidate) == [candidate, base]
    assert list_batch(base) == [base, candidate]
    work_batch(list_batch(candidate), score_with(policy))
    # What may be under way at once may be in both together.
    assert policy.most_at_once == 4
    ends = [list(one.results.order_by("pk").values_list("pk", flat=True)) for one in (base, candidate)]
    # Neither begins when the other has ended.
    assert ends[0][0] < ends[1][-1]
    assert ends[1][0] < ends[0][-1]
    for one in (base, candidate):
        one.refresh_from_db()
    assert (base.state, candidate.state) == (EvaluationState.FINISHED, EvaluationState.FINISHED)


def test_outage_is_tried_again_by_itself() -> None:
    evaluation = make_large()
    failed: set[str] = set()

    def answer(system: str, user: str) -> str:
        if user in ("q3", "q4") and user not in failed:
            failed.add(user)
            return outage()(system, user)
        return knows(system, user)

    policy = run(evaluation, answer)
    assert (evaluation.state, len(policy.asked)) == (EvaluationState.FINISHED, 42)
    tried = evaluation.results.filter(attempts=2).values_list("case__key", flat=True)
    assert sorted(tried) == ["q3", "q4"]


def test_outage_that_lasts_and_broken_judgements_are_not_tried_for_ever(settings: Settings) -> None:
    settings.EVALUATION_RETRY_ROUNDS = 2
    evaluation = make_large()
    policy = run(
        evaluation, lambda system, user: outage()(system, user) if user == "q5" else knows(system, user)
    )
    assert (evaluation.state, Counter(policy.asked)["q5"]) == (EvaluationState.PARTIAL, 3)
    assert evaluation.results.get(case__key="q5").attempts == 3


def test_budget_ends_the_evaluation_with_what_it_paid_for() -> None:
    evaluation = make_large(budget={"calls": 21}, concurrency=3)
    policy = FakeModel(knows)
    work_batch([evaluation], score_with(policy))
    evaluation.refresh_from_db()
    assert (evaluation.state, evaluation.stopped_by) == (EvaluationState.PARTIAL, "calls")
    assert sum(evaluation.usage.values_list("made", flat=True)) == 21
    kinds = Counter(evaluation.results.values_list("error_kind", flat=True))
    assert set(kinds) == {"", "budget"}
    assert kinds.total() == 40


@pytest.mark.django_db(transaction=True)
def test_broken_connections_lose_nothing(settings: Settings) -> None:
    """Another connection ends ours again and again, as a server that restarts does."""
    evaluation = make_large(concurrency=4)
    policy = SlowModel(0.02)
    over = threading.Event()
    ended = Counter[str]()
    database = connection.settings_dict
    address = {"host": database["HOST"], "port": database["PORT"] or None, "dbname": database["NAME"]}
    login = {"user": database["USER"], "password": database["PASSWORD"] or None}

    def break_connections() -> None:
        with psycopg.connect(**address, **login, autocommit=True) as link:
            while not over.wait(0.2):
                rows = link.execute(
                    "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
                    " WHERE datname = current_database() AND pid <> pg_backend_pid()"
                ).fetchall()
                ended["times"] += bool(rows)

    breaker = threading.Thread(target=break_connections)
    breaker.start()
    try:
        Engine([evaluation], score_with(policy)).work()
    finally:
        over.set()
        breaker.join()
        connection.close()
    assert ended["times"] >= 1
    assert Counter(policy.asked) == Counter(case.key for case in MANY)
    assert evaluation.results.filter(error_kind="").count() == 40
    assert sum(evaluation.usage.filter(role="policy").values_list("made", flat=True)) == 40
    assert transaction.get_autocommit()
