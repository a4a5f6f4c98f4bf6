"""The harnesses that ship."""

import pytest

from harness_repo.format.harness import read_harness
from harness_repo.starters import STARTERS, starter_files

TOOLS = {
    "get_product_info_by_link_id",
    "get_coupon_info",
    "get_product_spec",
    "get_stock",
    "get_delivery_info",
    "get_after_sales_policy",
    "get_order_policy",
    "get_live_activity",
    "search_faq",
}


@pytest.mark.parametrize("name", STARTERS)
def test_a_starter_reads_without_problems(name: str) -> None:
    harness = read_harness(starter_files(name))
    assert [str(problem) for problem in harness.problems] == []
    assert harness.name == name
    assert harness.prompt
    assert harness.hooks


def test_the_avatar_has_all_tools_and_both_kinds_of_skills() -> None:
    harness = read_harness(starter_files("live_commerce"))
    assert set(harness.tools) == TOOLS
    assert {skill.kind for skill in harness.skills.values()} == {"reply", "strategy"}


def test_the_judge_has_its_rubrics_and_a_schema_for_its_scores() -> None:
    harness = read_harness(starter_files("judge"))
    assert harness.kind == "judge"
    assert set(harness.skills) == {"accuracy", "effectiveness"}
    assert harness.reply_schema is not None


def test_an_unknown_starter_is_a_key_error() -> None:
    with pytest.raises(KeyError):
        starter_files("nothing")
