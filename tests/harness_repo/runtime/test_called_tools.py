import json
from typing import Any

from harness_repo.runtime.called_tools import infer_tools


def call(name: str, arguments: object) -> dict[str, object]:
    return {"id": "1", "type": "function", "function": {"name": name, "arguments": arguments}}


def test_tools_are_read_off_the_calls() -> None:
    first = call("get_order", json.dumps({"id": "W1", "full": True}))
    second = call("get_order", json.dumps({"id": "W2", "rows": [1], "limit": 3}))
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [first, call("think", "not JSON")]},
        {
            "role": "assistant",
            "tool_calls": [second, call("refund", {"amount": 1.5, "to": {}, "note": None})],
        },
    ]

    found = {
        tool["function"]["name"]: tool["function"]["parameters"]
        for tool in infer_tools({"messages": messages})
    }

    assert found == {
        "get_order": {
            "type": "object",
            "properties": {
                "id": {"type": "string"},
                "full": {"type": "boolean"},
                "rows": {"type": "array", "items": {}},
                "limit": {"type": "integer"},
            },
        },
        "think": {"type": "object", "properties": {}},
        "refund": {
            "type": "object",
            "properties": {"amount": {"type": "number"}, "to": {"type": "object"}, "note": {}},
        },
    }


def test_what_is_no_trajectory_has_none() -> None:
    odd: list[Any] = [None, [], {"messages": 3}, {"messages": [None, {"tool_calls": [7, {"function": "x"}]}]}]
    for value in odd:
        assert infer_tools(value) == []
