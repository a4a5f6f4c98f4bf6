"""The dataset as it is: balance, uniqueness, and every fact found again by a walk of its own."""

import json
import re
import subprocess
import sys
import time
import unicodedata
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from ruamel.yaml import YAML

import evolution.demonstration
from evolution.demonstration import CaseData, load_cases

FOLDER = Path(evolution.demonstration.__file__).parent
CATEGORIES = {
    "price_coupon", "spec", "comparison", "stock", "delivery", "after_sales", "order_change", "activity",
    "small_talk", "multi_danmaku", "out_of_scope",
}  # fmt: skip
MANNERS = {"small_talk", "out_of_scope"}
TOOLS = {
    "get_product_info_by_link_id", "get_coupon_info", "get_product_spec", "get_stock", "get_delivery_info",
    "get_after_sales_policy", "get_order_policy", "get_live_activity", "search_faq",
}  # fmt: skip


@pytest.fixture(scope="module")
def cases() -> list[CaseData]:
    return load_cases()


@pytest.fixture(scope="module")
def shared_facts() -> set[str]:
    # Another parser than the loader's.
    claims = YAML(typ="safe", pure=True).load(FOLDER / "claims.yaml")
    return {fact["fact"] for fact in claims["facts"].values()}


def squeeze(text: str) -> str:
    return re.sub(r"\s+", "", unicodedata.normalize("NFKC", text).casefold())


def evidence(case: CaseData) -> str:
    return squeeze(json.dumps([case.fixtures, case.context["faq"]], ensure_ascii=False))


def asked(case: CaseData) -> str:
    return " / ".join(line["text"] for line in case.request["danmaku"])


def test_every_split_has_its_size(cases: list[CaseData]) -> None:
    sizes = Counter(case.split for case in cases)
    assert sizes == {"dev": 120, "guard": 16, "sealed": 28, "calibration": 16}


def test_every_split_but_the_guard_has_every_category(cases: list[CaseData]) -> None:
    for split in ("dev", "sealed", "calibration"):
        assert {case.category for case in cases if case.split == split} == CATEGORIES


def test_categories_are_balanced(cases: list[CaseData]) -> None:
    assert all(12 <= size <= 20 for size in Counter(case.category for case in cases).values())


def test_a_fifth_is_english(cases: list[CaseData]) -> None:
    assert 0.18 <= sum(case.language == "en" for case in cases) / len(cases) <= 0.22


def test_the_language_is_that_of_the_danmaku(cases: list[CaseData]) -> None:
    for case in cases:
        language = "zh" if re.search(r"[\u4e00-\u9fff]", asked(case)) else "en"
        assert case.language == case.expected["language"] == language, case.key


def test_every_category_asks_in_both_languages(cases: list[CaseData]) -> None:
    assert len({(case.category, case.language) for case in cases}) == 2 * len(CATEGORIES)


def test_keys_and_requests_are_unique(cases: list[CaseData]) -> None:
    assert len({case.key for case in cases}) == len(cases)
    assert len({squeeze(asked(case)) for case in cases}) == len(cases)


def test_no_viewer_line_or_script_is_used_twice(cases: list[CaseData]) -> None:
    lines = [squeeze(line["text"]) for case in cases for line in case.request["danmaku"]]
    scripts = [case.context["room"]["script"] for case in cases]
    assert not [text for text, count in Counter(lines + scripts).items() if count > 1]


def test_several_viewers_ask_only_in_multi_danmaku(cases: list[CaseData]) -> None:
    for case in cases:
        assert (len(case.request["danmaku"]) > 1) == (case.category == "multi_danmaku"), case.key


def test_each_fact_of_a_product_stands_in_the_evidence(cases: list[CaseData], shared_facts: set[str]) -> None:
    for case in cases:
        if case.category in MANNERS:
            continue
        text = evidence(case)
        for fact in case.expected["facts"]:
            found = any(squeeze(value) in text for value in fact["accept"])
            assert found or fact["fact"] in shared_facts, (case.key, fact["fact"])


def test_the_prompt_does_not_give_a_fact_away(cases: list[CaseData]) -> None:
    for case in cases:
        if case.category in MANNERS:
            continue
        names = [product["name"] for product in case.context["products"]]
        seen = squeeze(" ".join([case.context["room"]["script"], asked(case), *names]))
        for fact in case.expected["facts"]:
            given = [value for value in fact["accept"] if squeeze(value) in seen]
            assert not given, (case.key, given)


def test_accepted_values_are_unambiguous(cases: list[CaseData]) -> None:
    values = [
        (case.key, squeeze(value))
        for case in cases
        for fact in case.expected["facts"]
        for value in fact["accept"]
    ]
    assert not [(key, value) for key, value in values if len(value) < 2]


def test_no_forbidden_text_stands_in_fixtures_context_or_a_fact(cases: list[CaseData]) -> None:
    for case in cases:
        accepts = [fact["accept"] for fact in case.expected["facts"]]
        text = squeeze(json.dumps([case.fixtures, case.context, accepts, case.request], ensure_ascii=False))
        for claim in case.expected["forbidden"]:
            assert not [match for match in claim["match"] if squeeze(match) in text], (
                case.key,
                claim["claim"],
            )


def test_english_facts_can_be_stated_in_english(cases: list[CaseData]) -> None:
    for case in cases:
        if case.language == "en":
            for fact in case.expected["facts"]:
                assert any(value.isascii() for value in fact["accept"]), (case.key, fact["fact"])


def test_a_sold_out_fact_belongs_to_a_room_with_sold_out_options(cases: list[CaseData]) -> None:
    for case in cases:
        if "说明已售罄" in {fact["fact"] for fact in case.expected["facts"]}:
            options = {entry["result"]["sold_out_options"] for entry in case.fixtures["get_stock"]}
            assert options - {"无", "无 (none)"}, case.key


def test_fixtures_answer_for_every_link(cases: list[CaseData]) -> None:
    for case in cases:
        links = [product["link_id"] for product in case.context["products"]]
        assert 4 <= len(links) <= 6
        assert set(case.fixtures) <= TOOLS
        for tool in ("get_coupon_info", "get_delivery_info"):
            assert [entry["arguments"] for entry in case.fixtures[tool]] == [
                {"link_id": link} for link in links
            ]
        assert case.context["room"]["current_link"] in links


def test_the_prompt_shows_no_more_than_it_should(cases: list[CaseData]) -> None:
    for case in cases:
        assert all(set(product) == {"link_id", "name"} for product in case.context["products"])
        assert set(case.context["room"]) == {"name", "host", "current_link", "script", "started"}
        assert len(case.context["faq"]) <= 3


def test_cases_are_plain_json(cases: list[CaseData]) -> None:
    def leaves(value: Any) -> set[type]:
        if isinstance(value, dict):
            return set().union(*map(leaves, value.values())) if value else set()
        if isinstance(value, list):
            return set().union(*map(leaves, value)) if value else set()
        return {type(value)}

    for case in cases:
        assert leaves([case.request, case.context, case.fixtures, case.expected]) <= {str, int, float}, (
            case.key
        )


def test_two_cases_of_a_room_share_no_objects(cases: list[CaseData]) -> None:
    first, second = [case for case in cases if case.context["room"]["host"] == "阿芷"][:2]
    first.fixtures["get_stock"][0]["result"]["stock"] += 1
    assert (
        first.fixtures["get_stock"][0]["result"]["stock"]
        == second.fixtures["get_stock"][0]["result"]["stock"] + 1
    )
    first.fixtures["get_stock"][0]["result"]["stock"] -= 1


def test_loading_takes_less_than_a_second() -> None:
    start = time.perf_counter()
    load_cases()
    assert time.perf_counter() - start < 1


def test_loading_needs_no_django() -> None:
    code = "import sys, evolution.demonstration as d; d.load_cases(); print('django' in sys.modules)"
    root = FOLDER.parents[1]
    done = subprocess.run([sys.executable, "-c", code], cwd=root, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
