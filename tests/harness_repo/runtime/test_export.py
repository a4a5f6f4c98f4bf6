import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

import pytest
from openai.types.chat import ChatCompletionMessageParam, ChatCompletionToolUnionParam
from pydantic import TypeAdapter

from harness_repo.runtime.chat import Usage
from harness_repo.runtime.export import to_atif, to_openai
from harness_repo.runtime.reading import read_trajectory
from harness_repo.runtime.trajectory import (
    CallRecord,
    Exchange,
    HookRecord,
    ToolCallRecord,
    Trajectory,
    join_runs,
)

TOOL = {
    "type": "function",
    "function": {"name": "find", "description": "d", "parameters": {"type": "object"}},
}


def make_call(key: str, arguments: object = '{"q": 1}') -> dict[str, Any]:
    return {"id": key, "type": "function", "function": {"name": "find", "arguments": arguments}}


RUN = Trajectory(
    status="ok",
    reply="89",
    messages=[
        {"role": "system", "content": "You sell."},
        {"role": "user", "content": "多少钱"},
        {"role": "assistant", "content": None, "tool_calls": [make_call("a"), make_call("b", "{broken")]},
        {"role": "tool", "tool_call_id": "a", "content": '{"price": 89}'},
        {"role": "tool", "tool_call_id": "b", "content": '{"error": "bad_arguments"}'},
        {"role": "assistant", "content": "八十九块钱"},
        {"role": "user", "content": "Reply again: too long"},
        {"role": "assistant", "content": "89"},
    ],
    tool_calls=[
        ToolCallRecord(1, "a", "find", {"q": 1}, {"price": 89}, None, 5.0),
        ToolCallRecord(1, "b", "find", "{broken", None, "bad_arguments", 0.0, "malformed"),
    ],
    hooks=[HookRecord(2, "reply", "short", "retry", "too long"), HookRecord(3, "reply", "short", "pass", "")],
    calls=[CallRecord(turn, 100.0, 10, 5, "m-1", 2, "stop", "fp", "hm" * (turn == 1)) for turn in (1, 2, 3)],
    usage=Usage(30, 15, 6),
    latency_ms=305.0,
    retries=1,
)
# A foreign agent's messages, with everything missing that may be.
LOOSE = Trajectory(
    "ok",
    "x",
    messages=[
        {"role": "tool", "tool_call_id": "lost", "content": "nobody asked"},
        {"role": "assistant", "tool_calls": [make_call("a", {"q": 1}), make_call("a", None)]},
        {"role": "tool", "tool_call_id": "a", "content": "one"},
        {"role": "assistant", "content": "", "tool_calls": [make_call("a"), make_call("")]},
        {"role": "assistant"},
    ],
)
ALL = [RUN, LOOSE, Trajectory("runner_error", None), Trajectory("ok", "hi"), join_runs([RUN, RUN])]


@pytest.mark.parametrize("run", ALL)
def test_messages_are_valid_chat_completions(run: Trajectory) -> None:
    exported = to_openai(run, [TOOL])
    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(exported["messages"])
    TypeAdapter(list[ChatCompletionToolUnionParam]).validate_python(exported["tools"])
    assert list(unanswered(exported["messages"])) == []
    json.dumps(exported)


def unanswered(messages: list[dict[str, Any]]) -> Iterator[str]:
    """What an endpoint would refuse: calls without an answer right after them, answers without a call, ids twice."""
    waiting: set[str] = set()
    seen: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in waiting:
                yield f"{message['tool_call_id']} was not asked for"
            waiting.discard(message["tool_call_id"])
            continue
        yield from sorted(waiting)
        waiting = {made["id"] for made in message.get("tool_calls", ())}
        yield from sorted(seen & waiting)
        seen |= waiting
    yield from sorted(waiting)


def test_messages_stay_as_they_were_sent() -> None:
    assert to_openai(RUN) == {"messages": RUN.messages}


def test_tools_are_named_only_when_they_are_known() -> None:
    assert to_openai(RUN, [TOOL])["tools"] == [TOOL]


def test_a_reply_alone_is_one_message() -> None:
    assert to_openai(Trajectory("ok", "hi")) == {"messages": [{"role": "assistant", "content": "hi"}]}


def atif(run: Trajectory) -> dict[str, Any]:
    return to_atif(
        run,
        session_id="s",
        agent_name="shop",
        agent_version="c" * 40,
        model_name="m",
        tools=[TOOL],
    )


# The rules of the format's reference reader (RFC 0001, version 1.6): fields, and which of them are required.
FIELDS: dict[str, tuple[set[str], set[str]]] = {
    "trajectory": (
        {"schema_version", "session_id", "agent", "steps"},
        {"notes", "final_metrics", "continued_trajectory_ref", "extra"},
    ),
    "agent": ({"name", "version"}, {"model_name", "tool_definitions", "extra"}),
    "step": (
        {"step_id", "source", "message"},
        {"timestamp", "model_name", "reasoning_effort", "reasoning_content", "tool_calls", "observation", "metrics",
         "is_copied_context", "extra"},
    ),
    "tool_call": ({"tool_call_id", "function_name", "arguments"}, set()),
    "result": (set(), {"source_call_id", "content", "subagent_trajectory_ref"}),
    "metrics": (
        set(),
        {"prompt_tokens", "completion_tokens", "cached_tokens", "cost_usd", "prompt_token_ids",
         "completion_token_ids", "logprobs", "extra"},
    ),
    "final_metrics": (
        set(),
        {"total_prompt_tokens", "total_completion_tokens", "total_cached_tokens", "total_cost_usd", "total_steps",
         "extra"},
    ),
}  # fmt: skip
AGENT_ONLY = {"model_name", "reasoning_effort", "reasoning_content", "tool_calls", "metrics"}


def check_fields(kind: str, record: Mapping[str, Any]) -> None:
    required, optional = FIELDS[kind]
    assert required <= set(record) <= required | optional


def check_atif(record: Mapping[str, Any]) -> None:
    check_fields("trajectory", record)
    assert re.fullmatch(r"ATIF-v1\.[0-6]", record["schema_version"])
    check_fields("agent", record["agent"])
    check_fields("final_metrics", record["final_metrics"])
    assert [step["step_id"] for step in record["steps"]] == list(range(1, len(record["steps"]) + 1))
    assert record["final_metrics"]["total_steps"] == len(record["steps"]) > 0
    for step in record["steps"]:
        check_step(step)


def check_step(step: Mapping[str, Any]) -> None:
    check_fields("step", step)
    assert step["source"] in ("system", "user", "agent")
    assert isinstance(step["message"], str | list)
    if step["source"] != "agent":
        assert not AGENT_ONLY & set(step)
    check_fields("metrics", step.get("metrics", {}))
    for made in step.get("tool_calls", ()):
        check_fields("tool_call", made)
        assert isinstance(made["arguments"], dict)
    asked = {made["tool_call_id"] for made in step.get("tool_calls", ())}
    for result in step.get("observation", {}).get("results", ()):
        check_fields("result", result)
        assert result["source_call_id"] in asked
        assert isinstance(result["content"], str | list)


@pytest.mark.parametrize("run", ALL)
def test_what_is_written_keeps_the_rules_of_the_format(run: Trajectory) -> None:
    record = atif(run)
    check_atif(record)
    json.dumps(record)


def test_a_step_has_what_its_model_call_took_and_thought() -> None:
    step = atif(RUN)["steps"][2]
    assert (step["source"], step["model_name"], step["reasoning_content"]) == ("agent", "m-1", "hm")
    assert step["metrics"] == {
        "prompt_tokens": 10,
        "completion_tokens": 5,
        "cached_tokens": 2,
        "extra": {"latency_ms": 100.0},
    }
    assert step["observation"]["results"][0] == {"source_call_id": "a", "content": '{"price": 89}'}
    assert [made["arguments"] for made in step["tool_calls"]] == [{"q": 1}, {"raw": "{broken"}]
    assert step["extra"]["faults"] == {"b": "malformed"}


def test_what_the_runtime_asked_for_is_no_word_of_the_user() -> None:
    assert [step["source"] for step in atif(RUN)["steps"]] == [
        "system", "user", "agent", "agent", "system", "agent",
    ]  # fmt: skip


def test_how_it_ended_and_what_was_said_are_kept() -> None:
    run = replace(RUN, status="turn_limit", error="out", conversation=[Exchange("多少钱", "89", "ok")])
    extra = atif(run)["extra"]
    assert (extra["status"], extra["error"]) == ("turn_limit", "out")
    assert extra["conversation"] == [{"user": "多少钱", "reply": "89", "status": "ok"}]
    totals = atif(run)["final_metrics"]
    assert (totals["total_prompt_tokens"], totals["total_completion_tokens"]) == (30, 15)


def call_of(name: object, key: str = "a") -> dict[str, Any]:
    return {"id": key, "function": {"name": name, "arguments": {}}}


WILD: list[list[dict[str, Any]]] = [
    [{"role": "user", "content": [7, None, {"type": "text", "text": "hi"}, {"type": "image_url"}]}],
    [{"role": "system", "content": None}, {"role": "developer"}, {"role": "user", "content": None}],
    [{"role": "assistant", "content": [{"type": "text"}], "tool_calls": [call_of(""), call_of("价格 查询")]}],
    [
        {"role": "assistant", "content": [[]], "tool_calls": [call_of("x" * 200)]},
        {"role": "tool", "content": [5]},
    ],
    [{"role": "tool", "content": [{"a": 1}], "tool_call_id": "a"}, {"role": "assistant", "tool_calls": None}],
]


@pytest.mark.parametrize("messages", WILD)
def test_whatever_an_agent_calls_a_message_becomes_one(messages: list[dict[str, Any]]) -> None:
    run = read_trajectory({"reply": "r", "messages": messages})
    exported = to_openai(run)["messages"]
    TypeAdapter(list[ChatCompletionMessageParam]).validate_python(exported)
    assert list(unanswered(exported)) == []
    names = [made["function"]["name"] for message in exported for made in message.get("tool_calls", ())]
    assert all(re.fullmatch("[A-Za-z0-9_-]{1,64}", name) for name in names)
    assert exported[-1] == {"role": "assistant", "content": "r"}
    json.dumps(to_atif(run, session_id="s", agent_name="a", agent_version="v"))


def test_calls_with_the_same_id_keep_the_answer_of_each() -> None:
    messages = [
        {
            "role": "assistant",
            "tool_calls": [call_of("find", "same"), call_of("find", "same"), call_of("find", "")],
        },
        {"role": "tool", "tool_call_id": "same", "content": "one"},
        {"role": "tool", "tool_call_id": "lost", "content": "nobody's"},
        {"role": "tool", "tool_call_id": "same", "content": "two"},
        {"role": "tool", "content": "three"},
    ]
    exported = to_openai(read_trajectory({"reply": "r", "messages": messages}))["messages"]
    assert [message["content"] for message in exported] == [None, "one", "two", "three", "r"]


def test_reply_that_a_hook_rewrote_is_not_said_twice() -> None:
    run = Trajectory("ok", "rewritten", messages=[{"role": "assistant", "content": "said"}])
    assert to_openai(run)["messages"] == run.messages


REQUEST = {"danmaku": [{"user": "Ann", "text": "how much?"}]}
FOREIGN = Trajectory(
    "ok",
    "89",
    tool_calls=[ToolCallRecord(0, "", "find", {"q": 1}, {"price": 89}, None, 0.0)],
    runner={"kind": "http"},
)


def brief(messages: list[dict[str, Any]]) -> list[tuple[str, object]]:
    return [
        (m["role"], m["tool_calls"][0]["function"]["name"] if m.get("tool_calls") else m["content"])
        for m in messages
    ]


def test_what_an_agent_told_beside_its_messages_is_put_into_them() -> None:
    told = to_openai(FOREIGN, request=REQUEST)["messages"]
    assert brief(told) == [
        ("user", "how much?"), ("assistant", "find"), ("tool", '{"price": 89}'), ("assistant", "89"),
    ]  # fmt: skip
    assert list(unanswered(told)) == []
    record = to_atif(FOREIGN, session_id="s", agent_name="a", agent_version="v", request=REQUEST)
    check_atif(record)
    assert [step["source"] for step in record["steps"]] == ["user", "agent", "agent"]


def test_failed_run_exports_its_error_and_no_empty_message() -> None:
    run = Trajectory("runner_error", None, error="exit code 1", runner={"kind": "command"})
    assert brief(to_openai(run, request=REQUEST)["messages"]) == [("user", "how much?")]
    assert to_openai(run) == {"messages": []}
    assert atif(run)["notes"] == "runner_error: exit code 1"


def test_conversation_is_told_once() -> None:
    def prompted(said: str, *rest: dict[str, Any]) -> list[dict[str, Any]]:
        return [
            {"role": "system", "content": "You sell."},
            {"role": "user", "content": f"(history) {said}"},
            *rest,
        ]

    call: list[dict[str, Any]] = [
        {"role": "assistant", "content": None, "tool_calls": [make_call("a")]},
        {"role": "tool", "tool_call_id": "a", "content": "1"},
    ]
    run = Trajectory(
        "ok", "two", messages=[
            *prompted("q1", *call, {"role": "assistant", "content": "one"}),
            *prompted("q2", {"role": "assistant", "content": "two"}),
        ],
        conversation=[Exchange("q1", "one", "ok"), Exchange("q2", "two", "ok"), Exchange("bye", None, "done")],
    )  # fmt: skip
    assert brief(to_openai(run)["messages"]) == [
        ("system", "You sell."), ("user", "q1"), ("assistant", "find"), ("tool", "1"), ("assistant", "one"),
        ("user", "q2"), ("assistant", "two"), ("user", "bye"),
    ]  # fmt: skip


def test_history_that_an_agent_repeats_is_left_out() -> None:
    first = [{"role": "user", "content": "q1"}, {"role": "assistant", "content": "one"}]
    run = Trajectory(
        "ok", "two",
        messages=[*first, *first, {"role": "user", "content": "q2"}, {"role": "assistant", "content": "two"}],
        conversation=[Exchange("q1", "one", "ok"), Exchange("q2", "two", "ok")],
        runner={"kind": "http"},
    )  # fmt: skip
    assert brief(to_openai(run)["messages"]) == [
        ("user", "q1"), ("assistant", "one"), ("user", "q2"), ("assistant", "two"),
    ]  # fmt: skip
