"""The loader on small files of its own: what it expands, and what it refuses by file and key."""

from pathlib import Path

import pytest

from evolution.demonstration import DatasetError
from evolution.demonstration.casefile import CaseData, read_cases
from evolution.demonstration.rooms import load_rooms

ROOM = """
tea:
  name: 茶铺
  host: 阿茶
  started: "10:00"
  products:
    - link_id: 1
      name: 白茶饼
      info: {price: 88, brand: 测牌}
      coupon: {final_price: 66}
      spec: {weight: 350g}
      stock: {stock: 12, sold_out_options: 无}
      delivery: {carrier: 顺丰}
      after_sales: {warranty: 不保}
  orders: {cancel: {answer: 出库前可退}}
  activity: {gift: 茶针}
  faq: {brew: {question: 怎么泡, answer: 用90度水}}
"""
CLAIMS = """
facts: {check: {fact: 说明需要核实, accept: [核实]}}
forbidden: {lowest: {claim: 全网最低, match: [全网最低价]}}
"""
CASE = """
- key: stock-001
  split: dev
  room: tea
  link: 1
  script: 喝茶
  danmaku: {甲: 还剩多少}
  facts: [{剩12: ["12"]}]
"""


def read(folder: Path, text: str) -> CaseData:
    (folder / "cases").mkdir()
    (folder / "rooms.yaml").write_text(ROOM, encoding="utf-8")
    (folder / "claims.yaml").write_text(CLAIMS, encoding="utf-8")
    (folder / "cases" / "stock.yaml").write_text(text, encoding="utf-8")
    return read_cases(folder)[0]


def test_a_case_gets_its_rooms_fixtures(tmp_path: Path) -> None:
    case = read(tmp_path, CASE)
    assert case.fixtures["get_stock"] == [
        {"arguments": {"link_id": 1}, "result": {"name": "白茶饼", "stock": 12, "sold_out_options": "无"}}
    ]
    assert case.fixtures["get_order_policy"] == [
        {"arguments": {"topic": "cancel"}, "result": {"answer": "出库前可退"}}
    ]
    assert case.fixtures["search_faq"] == [{"arguments": {}, "result": {"hits": []}}]


def test_the_context_names_the_room_and_the_shelf(tmp_path: Path) -> None:
    case = read(tmp_path, CASE)
    assert case.context["products"] == [{"link_id": 1, "name": "白茶饼"}]
    assert case.context["room"]["current_link"] == 1
    assert case.request == {"danmaku": [{"user": "甲", "text": "还剩多少"}], "history": []}


def test_faq_entries_are_retrieved_and_found(tmp_path: Path) -> None:
    case = read(tmp_path, CASE + "  faq: [brew]\n")
    assert case.context["faq"] == case.fixtures["search_faq"][0]["result"]["hits"]
    assert case.context["faq"] == [{"question": "怎么泡", "answer": "用90度水"}]


def test_hits_may_differ_from_the_retrieved_faq(tmp_path: Path) -> None:
    case = read(tmp_path, CASE + "  hits: [brew]\n")
    assert case.context["faq"] == []
    assert len(case.fixtures["search_faq"][0]["result"]["hits"]) == 1


def test_an_override_changes_and_removes_fields(tmp_path: Path) -> None:
    case = read(
        tmp_path,
        CASE + "  fixtures_override: {get_stock: {1: {sold_out_options: null, restock_date: 周五}}}\n",
    )
    assert case.fixtures["get_stock"][0]["result"] == {"name": "白茶饼", "stock": 12, "restock_date": "周五"}


def test_an_override_removes_a_tool_or_a_topic(tmp_path: Path) -> None:
    override = "  fixtures_override: {get_live_activity: null, get_order_policy: {cancel: null}}\n"
    case = read(tmp_path, CASE + override)
    assert "get_live_activity" not in case.fixtures
    assert case.fixtures["get_order_policy"] == []


def test_named_facts_and_claims_are_filled_in(tmp_path: Path) -> None:
    case = read(tmp_path, CASE.replace('{剩12: ["12"]}', "check") + "  forbidden: [lowest]\n")
    assert case.expected == {
        "facts": [{"fact": "说明需要核实", "accept": ["核实"]}],
        "forbidden": [{"claim": "全网最低", "match": ["全网最低价"]}],
        "language": "zh",
    }


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("room: tea", "room: coffee", "'coffee' is missing or unknown"),
        ("link: 1", "link: 7", "no link 7"),
        ("split: dev", "split: train", "unknown split 'train'"),
        ("split: dev", "split: dev\n  lang: fr", "unknown language 'fr'"),
        ("split: dev", "split: dev\n  mood: good", "unknown field mood"),
        ("stock-001", "spec-001", "does not start with stock-"),
        ('["12"]', '["13"]', "no accepted value of '剩12'"),
        ('["12"]', "[12]", "must be a list of texts"),
        ('{剩12: ["12"]}', "sure", "'sure' is missing or unknown"),
        ("{甲: 还剩多少}", "{甲: 还剩, 多少}", "must be a text"),
        ('[{剩12: ["12"]}]', "[]", "1 to 3 facts"),
    ],
)
def test_a_wrong_case_is_refused_by_file_and_key(tmp_path: Path, old: str, new: str, message: str) -> None:
    with pytest.raises(DatasetError, match=r"^stock\.yaml: (stock|spec)-001: ") as refused:
        read(tmp_path, CASE.replace(old, new))
    assert message in str(refused.value)


def test_earlier_replies_stand_in_the_history_as_lines(tmp_path: Path) -> None:
    case = read(tmp_path, CASE + "  history: [{user: 甲, text: 在吗, reply: 在的}]\n")
    assert case.request["history"] == [{"user": "甲", "text": "在吗"}, {"user": "主播", "text": "在的"}]


def test_a_field_without_value_is_refused(tmp_path: Path) -> None:
    (tmp_path / "rooms.yaml").write_text(ROOM.replace("brand: 测牌", "brand: 测牌, 老店"), encoding="utf-8")
    with pytest.raises(DatasetError, match=r"room tea: products: info: 老店 has no value"):
        load_rooms(tmp_path / "rooms.yaml")


def test_a_repeated_key_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match=r"stock\.yaml: stock-001: the key occurs twice"):
        read(tmp_path, CASE + CASE)
