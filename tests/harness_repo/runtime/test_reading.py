import json
from dataclasses import replace
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_repo.format.json_schema import load_schema
from harness_repo.runtime.chat import Usage
from harness_repo.runtime.reading import read_trajectory
from harness_repo.runtime.trajectory import (
    CallRecord,
    Exchange,
    HookRecord,
    ToolCallRecord,
    Trajectory,
    join_runs,
)

FULL = Trajectory(
    status="ok",
    reply="89",
    messages=[{"role": "user", "content": "多少钱"}, {"role": "assistant", "content": "89"}],
    skills_loaded=["item-qa"],
    tool_calls=[ToolCallRecord(1, "c1", "get_item", {"link_id": 3}, {"price": 89}, None, 1.5, "timeout")],
    hooks=[HookRecord(1, "reply", "short", "pass", "")],
    calls=[CallRecord(1, 100.0, 10, 5, "m-1", 2, "stop", "fp_1", "hm")],
    usage=Usage(10, 5, 2),
    latency_ms=101.5,
    finish_reason="stop",
    retries=1,
    conversation=[Exchange("多少钱", "89", "ok")],
    user_calls=[CallRecord(1, 50.0, 3, 2, "u-1")],
)
CALLS = [
    {"id": "a", "type": "function", "function": {"name": "find", "arguments": '{"q": 1}'}},
    {"id": "b", "type": "function", "function": {"name": "find", "arguments": "{broken"}},
]


def test_what_is_written_can_be_read_again() -> None:
    assert read_trajectory(json.loads(json.dumps(FULL.to_dict()))) == FULL


def test_what_is_written_fits_the_published_schema() -> None:
    schema = load_schema("trajectory")
    jsonschema.Draft202012Validator.check_schema(schema)
    for run in (FULL, Trajectory("time_limit", None), replace(FULL, status="user_error", reply=None)):
        jsonschema.validate(run.to_dict(), schema)
        # Every field of ours is documented.
        assert set(run.to_dict()) <= set(schema["properties"])


def test_a_reply_alone_is_a_trajectory() -> None:
    assert read_trajectory({"reply": "hi"}) == Trajectory("ok", "hi")


def test_more_than_the_format_knows_is_no_mistake() -> None:
    assert read_trajectory({"reply": "hi", "trace_id": "x"}).reply == "hi"


def test_tool_calls_are_found_in_the_messages() -> None:
    messages = [
        {"role": "assistant", "content": None, "tool_calls": CALLS},
        {"role": "tool", "tool_call_id": "a", "content": '{"price": 89}'},
        {"role": "assistant", "tool_calls": CALLS[:1]},
        {"role": "tool", "tool_call_id": "a", "content": "plain"},
    ]
    found = read_trajectory({"reply": "x", "messages": messages}).tool_calls
    assert [(call.turn, call.id, call.arguments, call.result) for call in found] == [
        (1, "a", {"q": 1}, {"price": 89}),
        (1, "b", "{broken", None),
        (2, "a", {"q": 1}, "plain"),
    ]


def test_tokens_and_times_are_summed_when_they_are_not_given() -> None:
    run = read_trajectory(
        {
            "reply": "x",
            "calls": [{"ms": 100, "prompt_tokens": 7, "completion_tokens": 2}, {"ms": 50}],
            "tool_calls": [
                {"name": "a", "turn": 1, "ms": 10},
                {"name": "b", "turn": 1, "ms": 30},
                {"name": "a", "turn": 2, "ms": 5},
            ],
        }
    )
    assert (run.usage, run.latency_ms) == (Usage(7, 2, 0), 100 + 50 + 30 + 5)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ([], r"\$: "),
        ({}, r"\$: "),
        ({"reply": 3}, r"\$\.reply: 3 is not of type"),
        ({"reply": None}, r"\$\.reply: missing"),
        ({"status": "fine", "reply": "x"}, r"\$\.status: 'fine' is not one of"),
        ({"reply": "x", "tool_calls": [{"ms": 1}]}, r"\$\.tool_calls\[0\]: 'name' is a required"),
        ({"reply": "x", "calls": [{"prompt_tokens": -1}]}, r"\$\.calls\[0\]\.prompt_tokens: -1"),
        ({"reply": "x", "latency_ms": 1e300}, r"\$\.latency_ms: "),
        ({"reply": "x", "messages": [{"role": "robot"}]}, r"\$\.messages\[0\]\.role: 'robot'"),
        ({"reply": "x", "messages": [{"role": "user"}] * 5001}, r"\$\.messages: 5001 entries, at most 5000"),
        (
            {"reply": "x", "messages": [{"role": "assistant", "tool_calls": CALLS * 2501}]},
            r"\$\.messages\[\*\]\.tool_calls: 5002 entries",
        ),
        ({"reply": "x", "format": "trajectory/9"}, r"\$\.format: 'trajectory/1' was expected"),
    ],
)
def test_what_is_wrong_is_named_with_its_path(value: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_trajectory(value)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from([*FULL.to_dict(), "name"]), inner)
    ),
    max_leaves=20,
)


@settings(max_examples=60, deadline=None)
@given(JSON)
def test_any_json_is_a_trajectory_or_a_value_error(value: object) -> None:
    try:
        run = read_trajectory(value)
    except ValueError:
        return
    json.dumps(run.to_dict())


def test_every_schema_is_one() -> None:
    folder = Path(__file__).parents[3] / "harness_repo/schemas"
    for path in folder.glob("*.json"):
        jsonschema.Draft202012Validator.check_schema(json.loads(path.read_text("utf-8")))


def test_sums_beyond_the_bounds_can_be_read_back() -> None:
    calls = [{"ms": 10**12, "prompt_tokens": 10**12, "turn": 10**12}] * 2
    run = read_trajectory({"reply": "r", "calls": calls})
    assert (run.usage.prompt_tokens, run.latency_ms) == (10**12, 10**12)
    assert read_trajectory(join_runs([run, run]).to_dict()).usage.prompt_tokens == 10**12
