from typing import Any

import pytest

from evolution.adapters.formats.span_attributes import find, find_text, list_entries, unflatten

ENTRIES = [{"message": {"role": "user"}}, {"message": {"role": "assistant"}}]


@pytest.mark.parametrize(
    "attributes",
    [
        {"llm.input_messages.1.message.role": "assistant", "llm.input_messages.0.message.role": "user"},
        {"llm.input_messages": [{"message.role": "user"}, {"message.role": "assistant"}]},
        {"llm": {"input_messages": ENTRIES}},
        {"llm.input_messages": '[{"message.role": "user"}, {"message.role": "assistant"}]'},
    ],
)
def test_a_list_is_the_same_however_it_is_kept(attributes: dict[str, Any]) -> None:
    assert list_entries(attributes, "llm.input_messages") == ENTRIES


def test_entries_stand_in_the_order_of_their_numbers() -> None:
    attributes = {f"a.{number}.b": number for number in (10, 9, 2)}
    assert list_entries(attributes, "a") == [{"b": 2}, {"b": 9}, {"b": 10}]


def test_the_first_name_that_is_there_counts() -> None:
    assert find({"b": 0, "c": 1}, "a", "b", "c") == 0
    assert find_text({"a": "", "b": {"x": 1}, "c": 7}, "a", "b", "c") == "7"
    assert find({"gen_ai": {"tool": {"name": "x"}}}, "gen_ai.tool.name") == "x"


def test_a_value_where_an_object_has_to_stand_gives_way() -> None:
    assert unflatten({"a": 1, "a.b": 2}) == unflatten({"a.b": 2, "a": 1}) == {"a": {"b": 2}}
