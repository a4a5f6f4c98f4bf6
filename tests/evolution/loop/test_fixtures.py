import asyncio
from typing import Any

import pytest

from evolution.loop.fixtures import take_fixtures
from harness_repo.format.tools import Tool
from harness_repo.runtime.sandbox import ToolSandbox


def call(arguments: Any, result: Any, name: str = "get_price", **fields: Any) -> dict[str, Any]:
    return {"name": name, "arguments": arguments, "result": result, **fields}


def test_answers_are_taken_by_tool() -> None:
    taken = take_fixtures(
        {
            "tool_calls": [
                call({"link_id": 3}, {"price": 89}),
                call({"link_id": 4}, "sold out"),
                call({}, {"hits": []}, "search_faq"),
                call({"name": "item-qa"}, "body", "load_skill"),
            ]
        }
    )
    assert taken.fixtures == {
        "get_price": [
            {"arguments": {"link_id": 3}, "result": {"price": 89}},
            {"arguments": {"link_id": 4}, "result": "sold out"},
        ],
        "search_faq": [{"arguments": {}, "result": {"hits": []}}],
    }


def test_what_failed_or_fits_no_call_is_counted() -> None:
    calls = [
        call({"a": 1}, None, error="timeout"),
        call({"a": 2}, None),
        call("not json", 1),
        call([1], 1),
        call('{"a": 3}', 1),
    ]
    taken = take_fixtures({"tool_calls": calls})

    assert (taken.failed, taken.unusable) == (2, 2)
    assert taken.fixtures == {"get_price": [{"arguments": {"a": 3}, "result": 1}]}


def test_the_first_of_identical_calls_counts() -> None:
    taken = take_fixtures({"tool_calls": [call({"a": 1, "b": 2}, "old"), call({"b": 2, "a": 1}, "new")]})

    assert taken.fixtures["get_price"] == [{"arguments": {"a": 1, "b": 2}, "result": "old"}]


def test_the_sandbox_answers_each_call_as_it_was_answered() -> None:
    made = [({}, "all"), ({"city": "x"}, "some"), ({"city": "x", "stars": 5}, "one")]
    taken = take_fixtures({"tool_calls": [call(arguments, result) for arguments, result in made]})
    tool = Tool("get_price", "", {"type": "object"}, {"kind": "fixture"})

    async def ask() -> list[object]:
        async with ToolSandbox({"get_price": tool}, taken.fixtures) as sandbox:
            texts = ["{}", '{"city": "x"}', '{"city": "x", "stars": 5}']
            return [(await sandbox.call("get_price", text)).result for text in texts]

    assert asyncio.run(ask()) == ["all", "some", "one"]


@pytest.mark.parametrize("odd", [None, [], 5, {"tool_calls": 3}, {"tool_calls": [None, {}, {"name": 5}]}])
def test_any_shape_is_survived(odd: object) -> None:
    assert take_fixtures(odd).fixtures == {}
