import pytest

from workbench.trajectories import read_turns

CALL = {"id": "c1", "type": "function", "function": {"name": "get_stock", "arguments": '{"link_id": 3}'}}
TRAJECTORY = {
    "messages": [
        {"role": "system", "content": "be kind"},
        {"role": "user", "content": [{"type": "text", "text": "3号还有吗"}]},
        {"role": "assistant", "content": None, "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": '{"stock": 0}'},
        {"role": "assistant", "content": "没有了"},
    ],
    "tool_calls": [
        {"turn": 1, "id": "c1", "name": "get_stock", "arguments": {"link_id": 3}, "result": {"stock": 0}}
    ],
    "hooks": [{"turn": 2, "event": "reply", "hook": "length", "outcome": "warn", "message": "long"}],
}


def test_results_are_shown_with_the_calls_they_answer() -> None:
    turns = read_turns(TRAJECTORY)

    assert [(turn.role, turn.turn) for turn in turns] == [
        ("system", 0),
        ("user", 0),
        ("assistant", 1),
        ("assistant", 2),
    ]
    assert turns[2].calls[0].result == '{\n  "stock": 0\n}'


def test_hooks_belong_to_their_turn() -> None:
    assert [hook["hook"] for hook in read_turns(TRAJECTORY)[3].fired] == ["length"]


def test_a_result_without_its_call_is_shown_alone() -> None:
    turns = read_turns({"messages": [{"role": "tool", "tool_call_id": "lost", "content": "x"}]})

    assert [(turn.role, turn.text) for turn in turns] == [("tool", "x")]


@pytest.mark.parametrize(
    "trajectory",
    [
        None,
        [],
        "text",
        {},
        {"messages": None},
        {"messages": [1, {"role": None, "tool_calls": [{"function": "x"}]}]},
    ],
)
def test_any_shape_is_survived(trajectory: object) -> None:
    assert isinstance(read_turns(trajectory), list)
