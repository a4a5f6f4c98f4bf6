import pytest
from scipy import stats

from evolution.loop import steps
from evolution.loop.flips import CasePair, CaseScores
from evolution.loop.halves import is_held_in
from evolution.models import Proposal, Step
from evolution.queries.halves import divide, find_division, read_halves
from tests.evolution.measured import (
    DEV,
    MANY,
    make_case,
    make_harness,
    make_proposal,
    make_version,
    measure,
    teach,
)

PASS, FAIL, HALF = CaseScores(1, 1, passes=1), CaseScores(0, 0.5), CaseScores(1, 0.5)


def pair(key: str, base: CaseScores, candidate: CaseScores) -> CasePair:
    return CasePair(key, "dev", "any", base, candidate)


def test_each_half_has_its_own_means_flips_and_number() -> None:
    pairs = [pair("a", FAIL, PASS), pair("b", PASS, PASS), pair("c", PASS, FAIL), pair("d", HALF, PASS)]

    halves = divide(pairs, ["a", "b", "elsewhere"])

    assert (halves.held_in.cases, halves.held_in.fixed, halves.held_in.broken) == (2, 1, 0)
    assert (halves.held_out.cases, halves.held_out.fixed, halves.held_out.broken) == (2, 1, 1)
    assert (halves.held_in.delta("accuracy"), halves.held_out.delta("accuracy")) == (0.5, -0.5)
    assert halves.held_out.delta("effectiveness") == 0


def test_the_interval_is_students_of_the_paired_differences() -> None:
    pairs = [pair(str(n), FAIL, PASS if n < 4 else FAIL) for n in range(10)]

    accuracy = divide(pairs, []).held_out.metrics[0]

    differences = [1.0] * 4 + [0.0] * 6
    reach = stats.t.ppf(0.975, 9) * stats.sem(differences)
    assert accuracy.low == pytest.approx(0.4 - reach)
    assert accuracy.high == pytest.approx(0.4 + reach)


def test_a_gain_that_is_only_held_in_is_named() -> None:
    assert divide([pair("a", FAIL, PASS), pair("b", PASS, PASS)], ["a"]).only_held_in == [
        "accuracy",
        "effectiveness",
    ]
    assert divide([pair("a", FAIL, PASS), pair("b", HALF, PASS)], ["a"]).only_held_in == ["accuracy"]
    assert divide([pair("a", FAIL, FAIL), pair("b", FAIL, PASS)], ["a"]).only_held_in == []


def test_without_a_held_out_case_nothing_is_suspected() -> None:
    halves = divide([pair("a", FAIL, PASS)], ["a"])

    assert (halves.only_held_in, halves.held_out.cases, halves.held_out.metrics) == ([], 0, [])


@pytest.mark.django_db
def test_a_step_divides_the_dev_cases_and_what_was_shown_is_held_in() -> None:
    harness = make_harness()
    make_version(harness, [*MANY, make_case("g1", split="guard"), make_case("s1", split="sealed")])
    proposal = make_proposal(harness, teach(1, 2, 3))
    unseen = next(case.key for case in MANY if not is_held_in(1, case.key))
    Proposal.objects.filter(pk=proposal.pk).update(shown_keys=[unseen])

    step = steps.merge_step(DEV, harness, [Proposal.objects.get(pk=proposal.pk)])

    divided = {case.key for case in MANY if is_held_in(1, case.key)}
    assert step.held_in == sorted(divided | {unseen})


@pytest.mark.django_db
def test_a_measured_step_tells_both_halves_and_an_old_one_neither() -> None:
    harness = make_harness()
    make_version(harness, MANY)
    step = steps.merge_step(DEV, harness, [make_proposal(harness, teach(*range(1, 11)))])
    assert read_halves(step) is None

    step = measure(step)

    halves = read_halves(step)
    assert halves is not None
    assert halves.held_in.cases == len(step.held_in)
    assert halves.held_in.cases + halves.held_out.cases == 40
    assert halves.held_in.fixed + halves.held_out.fixed == 8
    found = halves.to_dict()
    assert found["held_in"]["accuracy"]["delta"] == round(
        100 * halves.held_in.fixed / halves.held_in.cases, 2
    )
    assert step.base_evaluation is not None
    assert step.candidate_evaluation is not None
    assert find_division(step.base_evaluation, step.candidate_evaluation) == step.held_in
    Step.objects.update(held_in=[])
    assert read_halves(Step.objects.get()) is None


@pytest.mark.django_db
def test_cases_that_came_after_the_step_was_made_are_divided_when_it_is_measured() -> None:
    harness = make_harness()
    make_version(harness, MANY[:2])
    step = steps.merge_step(DEV, harness, [make_proposal(harness, teach(1, 2, 3))])
    make_version(harness, MANY)

    step = measure(step)

    assert step.held_in == sorted(case.key for case in MANY if is_held_in(1, case.key))
