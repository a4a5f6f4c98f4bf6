import pytest

from evolution.adapters.formats.mapping import (
    check_mapping,
    guess_mapping,
    map_fields,
    parse_mapping,
    read_field,
)
from evolution.errors import BrokenInput


@pytest.mark.parametrize(
    ("columns", "guess"),
    [
        (
            ["Question", "ANSWER", "Score"],
            {"request": "Question", "reply": "ANSWER", "score": "Score"},
        ),
        (["User Message", "user_input"], {"request": "User Message"}),
        (
            ["会话ID", "弹幕", "客服回复", "准确率"],
            {"session": "会话ID", "request": "弹幕", "reply": "客服回复", "scores.accuracy": "准确率"},
        ),
        (
            ["harness_commit", "blamed_turn"],
            {"harness_commit": "harness_commit", "blamed_turn": "blamed_turn"},
        ),
        (["price", ""], {}),
    ],
)
def test_usual_names_are_known(columns: list[str], guess: dict[str, str]) -> None:
    assert guess_mapping(columns) == guess


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "no JSON"),
        ("[]", "object of texts"),
        ('{"request": 1}', "object of texts"),
        ('{"requests": "a"}', "no field requests"),
        ('{"reply.text": "a"}', "no field reply.text"),
    ],
)
def test_a_mapping_that_is_none_is_refused(text: str, said: str) -> None:
    with pytest.raises(BrokenInput, match=said):
        parse_mapping(text)


def test_parts_of_scores_and_context_are_fields() -> None:
    check_mapping({"request": "a", "scores.any": "b", "context.order": "c"})
    assert parse_mapping('{"request": "/a/0"}') == {"request": "/a/0"}


@pytest.mark.parametrize(
    ("given", "moment"),
    [
        ("2024/6/1", "2024-06-01T00:00:00"),
        ("2024-6-1 8:05", "2024-06-01T08:05:00"),
        ("2024年6月1日 20:03:11", "2024-06-01T20:03:11"),
        ("2024年6月1日20时3分", "2024-06-01T20:03:00"),
        ("2024-06-01T20:03:11+08:00", "2024-06-01T20:03:11+08:00"),
    ],
)
def test_dates_of_tables_are_moments(given: str, moment: str) -> None:
    assert read_field("happened_at", given) == moment


@pytest.mark.parametrize(
    ("given", "failed"), [("否", True), ("是", False), ("已解决", False), ("失败", True), ("", None)]
)
def test_a_column_that_says_that_it_went_well_says_the_opposite(given: str, failed: object) -> None:
    fields = map_fields({"是否解决": given}, guess_mapping(["是否解决"]))
    assert fields.get("failed") is failed
    assert "passed" not in fields
