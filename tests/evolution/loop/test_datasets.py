from dataclasses import replace

import pytest

from evolution.demonstration import load_cases
from evolution.errors import BrokenInput
from evolution.loop.datasets import digest_cases, import_dataset
from evolution.models import Event
from tests.evolution.measured import ANNA, make_case, make_harness

pytestmark = pytest.mark.django_db
CASES = [make_case("a"), make_case("b", split="guard")]


def test_same_cases_in_any_order_are_the_same_version() -> None:
    harness = make_harness()
    first = import_dataset(ANNA, harness, "cases", CASES)
    assert import_dataset(ANNA, harness, "cases", CASES[::-1]) == first
    assert (first.number, first.cases.count()) == (1, 2)
    assert Event.objects.filter(verb="dataset.imported").count() == 1


def test_any_change_is_a_new_version_and_leaves_the_old_one() -> None:
    harness = make_harness()
    first = import_dataset(ANNA, harness, "cases", CASES)
    second = import_dataset(ANNA, harness, "cases", [CASES[0], replace(CASES[1], expected={"facts": ["x"]})])
    assert (second.number, second.dataset) == (2, first.dataset)
    assert first.cases.get(key="b").expected == {"facts": []}


def test_digest_depends_on_every_field() -> None:
    cases = [CASES[0], replace(CASES[0], category="x"), replace(CASES[0], split="sealed")]
    assert len({digest_cases([case]) for case in cases}) == 3


def test_cases_without_faults_have_the_digest_that_they_always_had() -> None:
    # What the version before there were faults made of the same cases.
    assert (
        digest_cases([make_case("q1")]) == "9f56564cbb70c36e97fe84007c81d20f8588eb19190d67e0d991a549fcfea206"
    )
    assert digest_cases(load_cases()) == "b5359f1ff844723847e9269883006e380e77db989f837318b6b622c29f720c67"
    faulty = replace(make_case("q1"), faults=[{"kind": "timeout"}])
    assert digest_cases([faulty]) != digest_cases([make_case("q1")])


def test_faults_are_stored_with_their_case() -> None:
    case = replace(CASES[0], faults=[{"kind": "timeout", "tool": "price"}])
    version = import_dataset(ANNA, make_harness(), "cases", [case])
    assert version.cases.get().faults == case.faults


def test_no_case_and_a_key_twice_are_refused() -> None:
    harness = make_harness()
    with pytest.raises(BrokenInput, match="at least one"):
        import_dataset(ANNA, harness, "cases", [])
    with pytest.raises(BrokenInput, match="twice: a"):
        import_dataset(ANNA, harness, "cases", [CASES[0], CASES[0]])
