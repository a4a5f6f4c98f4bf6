from typing import Any

import pytest

from evolution.loop.explained import list_explained
from evolution.models import Diagnosis, Exchange, FailureCase, Harness
from evolution.states import CaseState
from tests.evolution.intake import make_cluster

pytestmark = pytest.mark.django_db

TEXTS = ("how much is link 1", "how much is link 2", "is the shop open tonight", "is the shop open on Monday")


@pytest.fixture
def cases() -> list[FailureCase]:
    harness = Harness.objects.create(name="shop", kind="agent", path="shop.git")
    cluster = make_cluster(harness, texts=TEXTS)
    return list(FailureCase.objects.filter(cluster=cluster).order_by("pk"))


def diagnose(case: FailureCase, exchange: Exchange, **fields: Any) -> Diagnosis:
    """A hypothesis that quotes one case."""
    assert case.cluster is not None
    return Diagnosis.objects.create(
        harness=case.harness,
        cluster=case.cluster,
        part="skill",
        hypothesis="h",
        exchange=exchange,
        evidence=[{"case": case.pk, "turn": 0, "quote": case.title, "verified": True}],
        **fields,
    )


def test_each_hypothesis_of_an_answer_explains_what_it_quotes_and_what_is_like_it(
    cases: list[FailureCase],
) -> None:
    exchange = Exchange.objects.create(harness=cases[0].harness, purpose="diagnosis", model="m")
    price, hours = diagnose(cases[0], exchange), diagnose(cases[3], exchange, rank=2)
    assert list_explained(price) == cases[:2]
    assert list_explained(hours) == cases[2:]


def test_a_case_that_both_explain_is_of_both(cases: list[FailureCase]) -> None:
    exchange = Exchange.objects.create(harness=cases[0].harness, purpose="diagnosis", model="m")
    turns = [{"case": cases[3].pk, "turn": 1}]
    price, hours = diagnose(cases[0], exchange, first_wrong_turns=turns), diagnose(cases[3], exchange, rank=2)
    assert list_explained(price) == cases
    assert list_explained(hours) == cases[2:]


def test_the_only_hypothesis_explains_all(cases: list[FailureCase]) -> None:
    exchange = Exchange.objects.create(harness=cases[0].harness, purpose="diagnosis", model="m")
    assert list_explained(diagnose(cases[0], exchange)) == cases


def test_what_a_quoted_case_explains_stays_so_when_it_is_dealt_with(cases: list[FailureCase]) -> None:
    exchange = Exchange.objects.create(harness=cases[0].harness, purpose="diagnosis", model="m")
    price, hours = diagnose(cases[0], exchange), diagnose(cases[3], exchange, rank=2)
    FailureCase.objects.filter(pk__in=[cases[0].pk, cases[3].pk]).update(state=CaseState.IGNORED)
    assert list_explained(price) == [cases[1]]
    assert list_explained(hours) == [cases[2]]
