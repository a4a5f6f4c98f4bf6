import pytest

from evolution.loop import promotion, steps
from evolution.loop.authors import author_of
from evolution.loop.lineage import find_live_steps, find_unreleased_main
from evolution.loop.repositories import open_repository
from evolution.models import Harness, Step
from tests.evolution.measured import (
    ANNA,
    DEV,
    make_harness,
    make_measured_step,
    make_proposal,
    measure,
    teach,
)

pytestmark = pytest.mark.django_db


def promote_next(harness: Harness, *numbers: int) -> Step:
    step = measure(steps.merge_step(DEV, harness, [make_proposal(harness, teach(*numbers))]))
    promotion.promote(ANNA, step, "was asked for")
    return step


def live_steps(harness: Harness) -> list[int]:
    live = find_live_steps(harness, open_repository(harness).resolve("main"))
    return sorted(Step.objects.get(pk=pk).number for pk in live)


def roll_back_to(harness: Harness, number: int) -> None:
    promotion.roll_back_to(ANNA, harness, harness.releases.get(number=number), "complaints")


def test_promotions_add_up_and_roll_backs_take_away() -> None:
    first = make_measured_step(teach(*range(1, 15)))
    harness = first.harness
    assert live_steps(harness) == []
    promotion.promote(ANNA, first)
    promote_next(harness, *range(1, 30))
    assert live_steps(harness) == [1, 2]
    roll_back_to(harness, 2)
    assert live_steps(harness) == [1]
    roll_back_to(harness, 1)
    assert live_steps(harness) == []
    promote_next(harness, *range(1, 25))
    assert live_steps(harness) == [3]
    # Release 4 is the roll back to the first step.
    roll_back_to(harness, 4)
    assert live_steps(harness) == [1]


def test_version_made_by_hand_consists_of_what_it_builds_on() -> None:
    step = make_measured_step(teach(*range(1, 15)))
    promotion.promote(ANNA, step)
    repository = open_repository(step.harness)
    edit = {"prompts/a.md": b"x\n"}
    repository.commit("main", edit, parent="main", author=author_of(DEV), message="by hand")
    assert live_steps(step.harness) == [1]


def test_main_that_no_release_names_is_found() -> None:
    harness = make_harness()
    assert find_unreleased_main(harness) == ""
    edit = {"prompts/a.md": b"x\n"}
    made = open_repository(harness).commit("main", edit, parent="main", author=author_of(DEV), message="m")
    assert find_unreleased_main(harness) == made
