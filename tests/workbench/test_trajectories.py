from typing import Any

import pytest

from workbench.trajectories import (
    GapView,
    count_faults,
    describe_status,
    keep_shown,
    read_loose_calls,
    read_runner,
    read_turns,
)

CALL = {"id": "c1", "type": "function", "function": {"name": "get_stock", "arguments": '{"link_id": 3}'}}
TRAJECTORY: dict[str, Any] = {
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
    assert turns[2].calls[0].result == {"stock": 0}


def test_hooks_belong_to_their_turn() -> None:
    assert [hook["hook"] for hook in read_turns(TRAJECTORY)[3].fired] == ["length"]


def test_a_result_without_its_call_is_shown_alone() -> None:
    turns = read_turns({"messages": [{"role": "tool", "tool_call_id": "lost", "content": "x"}]})

    assert [(turn.role, turn.text) for turn in turns] == [("tool", "x")]


def test_an_id_that_comes_again_belongs_to_its_turn() -> None:
    messages = [
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "first"},
        {"role": "assistant", "tool_calls": [CALL]},
        {"role": "tool", "tool_call_id": "c1", "content": "second"},
    ]
    records = [
        {"turn": 1, "id": "c1", "error": "timeout", "fault": "timeout"},
        {"turn": 2, "id": "c1", "error": None},
    ]
    calls = [turn.calls[0] for turn in read_turns({"messages": messages, "tool_calls": records})]
    assert [(call.result, call.error, call.fault) for call in calls] == [
        ("first", "timeout", "timeout"),
        ("second", "", ""),
    ]


def test_hooks_at_the_input_belong_to_what_came_in() -> None:
    hooks = [
        {"turn": 0, "event": "input", "hook": "polite", "outcome": "warn"},
        {"turn": 1, "event": "input", "hook": "again", "outcome": "pass"},
    ]
    messages = [{"role": role, "content": ""} for role in ("system", "user", "assistant", "user")]
    turns = read_turns({"messages": messages, "hooks": hooks})
    assert [[hook["hook"] for hook in turn.hooks] for turn in turns] == [[], ["polite"], [], ["again"]]


def test_a_message_knows_the_call_that_brought_it() -> None:
    calls = [{"turn": 2, "ms": 80, "finish_reason": "length"}]
    turns = read_turns({**TRAJECTORY, "calls": calls})
    assert (turns[2].made, turns[3].made, turns[3].is_cut_off) == ({}, calls[0], True)


def test_an_end_has_words_and_what_has_none_stays() -> None:
    assert (describe_status("token_limit"), describe_status("odd"), describe_status(None)) == (
        "tokens used up", "odd", "None",
    )  # fmt: skip


@pytest.mark.parametrize(
    "trajectory",
    [
        {
            "messages": [{"role": "user"}],
            "hooks": [{"turn": []}],
            "calls": [{"turn": {}}],
            "tool_calls": [{"turn": []}],
        },
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


def test_a_call_that_stands_in_no_message_is_kept_apart() -> None:
    records = [
        *TRAJECTORY["tool_calls"],
        {"turn": 1, "id": "", "name": "get_price", "arguments": {"link_id": 3}, "result": {"price": 89}},
        {"id": "c1", "name": "again", "error": "timeout: 5 s"},
    ]
    loose = read_loose_calls({**TRAJECTORY, "tool_calls": records})

    assert [(call.turn, call.name, call.summary, call.error) for call in loose] == [
        ("1", "get_price", "link_id=3", ""),
        ("", "again", "", "timeout: 5 s"),
    ]
    assert loose[0].result == {"price": 89}
    assert read_loose_calls(TRAJECTORY) == []


def test_faults_are_counted_by_kind_and_tool() -> None:
    calls = [{"name": "a", "fault": kind} for kind in ("timeout", None, "malformed", "timeout")]

    assert count_faults({"tool_calls": calls}) == [("timeout", "a", 2), ("malformed", "a", 1)]


@pytest.mark.parametrize(
    ("runner", "facts", "stderr"),
    [
        ({"kind": "command", "exit_code": 1, "stderr": "boom"}, [("exit code", "1")], "boom"),
        ({"kind": "command", "exit_code": None, "stderr": ""}, [("exit code", "–")], ""),
        ({"kind": "http", "status": 502}, [("HTTP status", "502")], ""),
    ],
)
def test_the_runners_record_is_read(runner: object, facts: list[tuple[str, str]], stderr: str) -> None:
    view = read_runner({"runner": runner})

    assert view is not None
    assert (view.facts, view.stderr) == (facts, stderr)


@pytest.mark.parametrize("trajectory", [None, [], {}, {"runner": 3}, {"runner": {}, "tool_calls": [1]}])
def test_what_has_no_runner_has_no_record(trajectory: object) -> None:
    assert read_runner(trajectory) is None
    assert (read_loose_calls(trajectory), count_faults(trajectory)) == ([], [])


def test_what_is_shown_is_found_again_by_its_pointer() -> None:
    call = read_turns({"messages": TRAJECTORY["messages"]})[2].calls[0]

    assert (call.arguments_path, call.result_path) == (
        "/messages/2/tool_calls/0/function/arguments",
        "/messages/3/content",
    )
    recorded = read_turns(TRAJECTORY)[2].calls[0]
    assert (recorded.arguments_path, recorded.result_path) == (
        "/tool_calls/0/arguments",
        "/tool_calls/0/result",
    )


def test_an_image_is_named_and_its_data_left_out() -> None:
    parts = [
        {"type": "image_url", "image_url": {"url": address}}
        for address in ("data:image/png;base64,AAAA", "https://x/y")
    ]
    turn = read_turns({"messages": [{"role": "user", "content": [*parts, {"text": "look"}, "here"]}]})[0]

    assert turn.text == "[image_url]\n[image_url: https://x/y]\nlook\nhere"


def test_of_very_many_turns_some_are_left_out() -> None:
    turns = read_turns({"messages": [{"role": "assistant", "content": "x"}] * 1_000})

    shown = keep_shown(turns, 500)

    gaps = [view.count for view in shown if isinstance(view, GapView)]
    assert len(gaps) == 2
    assert sum(gaps) + len(shown) - len(gaps) == 1_000
    assert turns[499] in shown
    assert keep_shown(turns[:300]) == turns[:300]
