from typing import Any

from evolution.adapters.formats.messages import build_trajectory, check_messages


def results(*messages: dict[str, Any], **options: Any) -> list[tuple[str, Any, str | None]]:
    calls = build_trajectory(check_messages(list(messages)), **options)["tool_calls"]
    return [(call["name"], call["result"], call["error"]) for call in calls]


def agent(*names: str, ids: tuple[str, ...] = ()) -> dict[str, Any]:
    identities = ids or ("",) * len(names)
    calls = [
        {"id": identity, "function": {"name": name, "arguments": "{}"}}
        for name, identity in zip(names, identities, strict=True)
    ]
    return {"role": "assistant", "content": None, "tool_calls": calls}


def tool(content: str, **fields: Any) -> dict[str, Any]:
    return {"role": "tool", "content": content, **fields}


def test_ids_that_are_numbered_anew_in_each_turn_do_not_mix() -> None:
    first, second = agent("a", ids=("call_0",)), agent("b", ids=("call_0",))
    said = (first, tool("1", tool_call_id="call_0"), second, tool("2", tool_call_id="call_0"))
    assert results(*said) == [("a", 1, None), ("b", 2, None)]


def test_a_late_result_is_found_by_its_id() -> None:
    late = tool("late", tool_call_id="x")
    assert results(agent("a", ids=("x",)), {"role": "assistant", "content": "wait"}, late) == [
        ("a", "late", None)
    ]


def test_names_go_before_order_where_there_are_no_ids() -> None:
    assert results(agent("a", "b"), tool("B", name="b"), tool("A", name="a")) == [
        ("a", "A", None),
        ("b", "B", None),
    ]


def test_a_result_answers_one_call() -> None:
    assert results(agent("a", "a"), tool("1"), tool("2")) == [("a", 1, None), ("a", 2, None)]
    assert results(agent("a", "a"), tool("1")) == [("a", 1, None), ("a", None, "no_result")]


def test_errors_of_calls_come_from_text_or_from_the_source() -> None:
    said = (
        agent("a", "b", ids=("1", "2")),
        tool("Error: none", tool_call_id="1"),
        tool("x", tool_call_id="2"),
    )
    assert results(*said, errors={"2": "timed out"}) == [
        ("a", "Error: none", "error: Error: none"),
        ("b", "x", "error: timed out"),
    ]
