from dataclasses import replace
from decimal import Decimal
from typing import Any

import pytest
from pytest_django import Settings

from evolution.loop import estimates
from evolution.loop.batches import work_batch
from evolution.loop.estimates import Estimate, RoleEstimate, estimate
from evolution.loop.evaluation import build_scorer, create_evaluation, newest_version
from evolution.loop.kept_calls import Ledger
from evolution.models import Evaluation, EvaluationUsage, Harness, ModelCall
from evolution.ports import NamedModel
from tests.evolution.conversing import conversations
from tests.evolution.measured import (
    DEV,
    FakeModel,
    judge_reply,
    knows,
    make_case,
    make_evaluation,
    make_harness,
    make_version,
)

pytestmark = pytest.mark.django_db

PRICES = {"m": {"input": 1, "output": 10}, "j": {"input": 2, "output": 20}}


def models_of(policy: FakeModel | None = None) -> dict[str, NamedModel]:
    return {
        "policy": NamedModel(policy or FakeModel(knows), "m"),
        "judge": NamedModel(FakeModel(judge_reply), "j"),
    }


def measure(evaluation: Evaluation) -> None:
    """Work on it here through a ledger, as workers do."""
    ledger = Ledger(evaluation)
    policy, judge = (ledger.wrap(role, named) for role, named in models_of().items())
    work_batch([evaluation], lambda _: replace(build_scorer(evaluation, policy, judge), ledger=ledger))


def by_role(found: Estimate) -> dict[str, tuple[int, int, int]]:
    return {role.role: (role.calls, role.cached, role.to_make) for role in found.roles}


def first_of(found: Estimate) -> RoleEstimate:
    return found.roles[0]


def test_history_tells_calls_tokens_and_money_of_a_case(settings: Settings) -> None:
    settings.MODEL_PRICES = PRICES
    harness = make_harness()
    measure(make_evaluation(harness))
    found = estimate(make_evaluation(harness, repeats=3, is_fresh=True), models_of())
    # Each of the four cases took one call of 10 and 5 tokens of either model; three repeats of them are twelve.
    assert by_role(found) == {"policy": (12, 0, 12), "judge": (12, 0, 12)}
    assert [(role.prompt_tokens, role.completion_tokens) for role in found.roles] == [(120, 60)] * 2
    assert [role.cost for role in found.roles] == [Decimal("0.00072"), Decimal("0.00144")]
    assert (found.total.calls, found.total.cost, found.total.basis) == (24, Decimal("0.00216"), "history")
    assert found.pairs == 12


def test_what_kept_answers_save_is_left_out(settings: Settings) -> None:
    settings.MODEL_PRICES = PRICES
    harness = make_harness()
    measure(make_evaluation(harness))
    # The first repeat is there already, the other two are not.
    found = estimate(make_evaluation(harness, repeats=3), models_of())
    assert by_role(found) == {"policy": (12, 4, 8), "judge": (12, 4, 8)}
    assert (found.sampled, first_of(found).cost) == (12, Decimal("0.00048"))


def test_an_evaluation_that_is_kept_whole_costs_nothing(settings: Settings) -> None:
    settings.MODEL_PRICES = {}
    evaluation = make_evaluation(make_harness())
    measure(evaluation)
    found = estimate(evaluation, models_of())
    assert (found.total.to_make, found.total.cached, found.total.cost) == (0, 8, Decimal(0))


def test_of_many_cases_some_are_looked_up_and_scaled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(estimates, "MOST_SAMPLED", 5)
    harness = make_harness()
    make_version(harness, [make_case(f"q{number}") for number in range(20)])
    evaluation = _evaluate_newest(harness)
    measure(evaluation)
    found = estimate(evaluation, models_of())
    assert (found.sampled, found.pairs) == (5, 20)
    assert by_role(found) == {"policy": (20, 20, 0), "judge": (20, 20, 0)}


def test_an_unknown_price_is_said(settings: Settings) -> None:
    settings.MODEL_PRICES = {"m": PRICES["m"]}
    found = estimate(make_evaluation(make_harness()), models_of())
    assert [role.cost is None for role in found.roles] == [False, True]
    assert found.total.cost is None


def test_without_history_prompts_are_measured() -> None:
    found = estimate(make_evaluation(make_harness()), models_of())
    assert by_role(found) == {"policy": (4, 0, 4), "judge": (4, 0, 4)}
    assert [role.basis for role in found.roles] == ["prompt size"] * 2
    # The prompts of this agent and this judge are some ten and some twenty words long.
    assert all(20 <= role.prompt_tokens / 4 <= 80 for role in found.roles)


def test_no_model_is_asked_and_nothing_is_written() -> None:
    evaluation = make_evaluation(make_harness())
    policy = FakeModel(knows)
    estimate(evaluation, models_of(policy))
    assert policy.asked == []
    assert not ModelCall.objects.exists()
    assert not EvaluationUsage.objects.exists()
    assert not evaluation.results.exists()


def test_another_model_has_its_history_from_the_last_one() -> None:
    harness = make_harness()
    measure(make_evaluation(harness))
    models = {**models_of(), "policy": NamedModel(FakeModel(knows), "n")}
    evaluation = make_evaluation(harness, repeats=2)
    evaluation.model = "n"
    found = estimate(evaluation, models)
    assert (first_of(found).model, first_of(found).basis, first_of(found).cached) == ("n", "history", 0)


def test_an_agent_of_its_own_asks_models_of_its_own() -> None:
    harness = make_harness()
    evaluation = make_evaluation(harness)
    evaluation.runner = {"kind": "command", "command": ["agent"], "seconds": 5.0}
    found = estimate(evaluation, {"judge": models_of()["judge"]})
    assert by_role(found) == {"judge": (4, 0, 4)}
    assert found.sampled == 0


def test_only_conversations_ask_a_user() -> None:
    harness = make_harness()
    make_version(harness, [conversations()[0], make_case("q1"), make_case("q2"), make_case("q3")])
    evaluation = _evaluate_newest(harness, user_model="u")
    found = estimate(evaluation, {**models_of(), "user": NamedModel(FakeModel(knows), "u")})
    assert by_role(found)["user"] == (1, 0, 1)


def _evaluate_newest(harness: Harness, **options: Any) -> Evaluation:
    version = newest_version(harness)
    return create_evaluation(DEV, harness, "main", version, model="m", judge_model="j", **options)
