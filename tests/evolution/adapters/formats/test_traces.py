"""A trace as one record: its conversation, the calls of its tools, and what went wrong."""

import json
from datetime import UTC, datetime
from itertools import permutations
from typing import Any

import pytest

from evolution.adapters.formats.traces import assemble
from evolution.ports import Check, Feedback, Rejected
from tests.evolution.adapters.formats.spans import (
    TRACE,
    answers,
    calls,
    dialogue,
    event,
    make_span,
    model_span,
    read_one,
    read_with,
    says,
    tool_span,
    user,
)

AGENT = {"gen_ai.operation.name": "invoke_agent"}
ASK = user("3号链接多少钱？")
SYSTEM = {"role": "system", "content": "Be brief."}
LOOP = [ASK, calls("get_price", "c1", '{"link": 3}'), answers("c1", '{"price": 89}')]


def agent_trace() -> list[dict[str, Any]]:
    """An agent that asks the model twice, with a call of a tool between."""
    return [
        make_span(1, attributes=AGENT),
        model_span(2, 1, [ASK], LOOP[1]),
        tool_span(3, 1, "get_price", {"link": 3}, {"price": 89}, attributes={"gen_ai.tool.call.id": "c1"}),
        model_span(4, 1, LOOP, says("89元"), attributes={"gen_ai.usage.input_tokens": "30"}),
    ]


def test_the_conversation_is_that_of_the_last_call_in_the_loop() -> None:
    record = read_one(*agent_trace())
    assert dialogue(record) == [
        ("user", "3号链接多少钱？"),
        ("assistant", None, ("get_price", '{"link": 3}')),
        ("tool", '{"price": 89}'),
        ("assistant", "89元"),
    ]
    assert record.request == {"danmaku": [{"user": "user", "text": "3号链接多少钱？"}], "history": []}
    assert (record.source_id, record.reply, record.failed, record.has_status) == (TRACE, "89元", None, True)
    (call,) = record.trajectory["tool_calls"]
    assert (call["turn"], call["result"], call["ms"]) == (1, {"price": 89}, 10.0)
    assert [(call["turn"], call["prompt_tokens"]) for call in record.trajectory["calls"]] == [(1, 0), (2, 30)]
    assert record.trajectory["usage"]["prompt_tokens"] == 30


def test_the_order_in_which_spans_come_says_nothing() -> None:
    spans = [*agent_trace(), model_span(5, 3, [SYSTEM, user("x")], says("y"))]
    wanted = read_one(*spans)
    assert all(read_one(*order) == wanted for order in permutations(spans))


def test_a_span_that_was_sent_twice_is_one() -> None:
    started = [{**span, "end": 0, "attributes": {}} for span in agent_trace()]
    assert read_one(*started, *agent_trace()) == read_one(*agent_trace())
    assert read_one(*agent_trace(), *started) == read_one(*agent_trace())


def test_a_late_span_adds_to_the_same_record() -> None:
    before, after = read_one(*agent_trace()[:3]), read_one(*agent_trace())
    assert (before.source_id, before.reply) == (after.source_id, "")
    # The answer of the tool is known from its own span.
    assert dialogue(before) == dialogue(after)[:3]


@pytest.mark.parametrize("kind", ["TOOL", "EVALUATOR", "GUARDRAIL"])
def test_what_is_said_inside_a_tool_or_a_judge_is_not_the_conversation(kind: str) -> None:
    inner = [SYSTEM, user("a"), says("b"), user("c"), says("d"), user("e")]
    spans = [
        *agent_trace(),
        make_span(5, 1, attributes={"openinference.span.kind": kind}),
        model_span(6, 5, inner, says("f")),
    ]
    assert dialogue(read_one(*spans)) == dialogue(read_one(*agent_trace()))


def test_of_several_threads_the_one_with_the_root_s_answer_counts() -> None:
    examples = [SYSTEM, user("a"), says("price"), user("b"), says("size"), ASK]
    router = model_span(5, 1, examples, says("price"))
    root = make_span(1, attributes={**AGENT, "output.value": "89元"})
    assert read_one(root, router, *agent_trace()[1:]).reply == "89元"


def test_results_alone_go_on_with_the_calls_before_them() -> None:
    """The Responses API keeps the conversation itself, and is sent what is new alone."""
    record = read_one(model_span(1, 0, [ASK], LOOP[1]), model_span(2, 0, LOOP[2:], says("89元")))
    assert [role for role, *_rest in dialogue(record)] == ["user", "assistant", "tool", "assistant"]
    assert [call["turn"] for call in record.trajectory["calls"]] == [1, 2]


def test_calls_that_no_message_has_stand_before_the_answer() -> None:
    root = make_span(
        1, attributes={**AGENT, "input.value": '{"question": "多少钱？"}', "output.value": "89元"}
    )
    record = read_one(root, tool_span(2, 1, "get_price", {"link": 3}, {"price": 89}))
    assert dialogue(record) == [
        ("user", "多少钱？"),
        ("assistant", None, ("get_price", '{"link": 3}')),
        ("tool", '{"price": 89}'),
        ("assistant", "89元"),
    ]


def test_a_tool_s_span_without_an_id_is_matched_by_name_and_arguments() -> None:
    asked = {**calls("get_price", "c1", '{"link": 3}')}
    asked["tool_calls"] = [*asked["tool_calls"], *calls("get_price", "c2", '{"link": 4}')["tool_calls"]]
    spans = [
        model_span(1, 0, [ASK], asked),
        tool_span(2, 0, "get_price", {"link": 4}, {"price": 20}),
        tool_span(3, 0, "get_price", {"link": 3}, {"price": 89}),
    ]
    found = read_one(*spans).trajectory["tool_calls"]
    assert [(call["id"], call["result"]) for call in found] == [("c1", {"price": 89}), ("c2", {"price": 20})]


def test_a_tool_of_a_sub_agent_is_told_beside_the_conversation() -> None:
    other = tool_span(5, 1, "search", {"q": "x"}, ["y"], attributes={"gen_ai.tool.call.id": "z9"})
    record = read_one(*agent_trace(), other)
    assert dialogue(record) == dialogue(read_one(*agent_trace()))
    assert [(call["name"], call["turn"]) for call in record.trajectory["tool_calls"]] == [
        ("get_price", 1),
        ("search", 2),
    ]


def test_a_retrieval_is_no_call_of_the_model() -> None:
    attributes = {
        "openinference.span.kind": "RETRIEVER",
        "input.value": "多少钱",
        "retrieval.documents.0.document.content": "防晒霜 89元",
    }
    record = read_one(*agent_trace(), make_span(5, 1, name="faq", attributes=attributes))
    found = record.trajectory["tool_calls"][-1]
    assert (found["name"], found["arguments"], found["result"]) == (
        "faq",
        {"query": "多少钱"},
        [{"content": "防晒霜 89元"}],
    )


def test_an_error_is_told_once_though_it_went_up_through_all_spans() -> None:
    boom = event("exception", **{"exception.type": "TimeoutError", "exception.message": "no answer in 5 s"})
    failed = {"status": "error", "message": "TimeoutError: no answer in 5 s"}
    tool = tool_span(3, 2, "get_price", {"link": 3}, None, events=[boom], **failed)
    record = read_one(
        make_span(1, attributes=AGENT, **failed),
        model_span(2, 1, [ASK], calls("get_price", "c1", '{"link": 3}')),
        tool,
    )
    assert record.errors == ("span 3: TimeoutError: no answer in 5 s",)
    assert record.trajectory["tool_calls"][0]["error"] == "error: TimeoutError: no answer in 5 s"
    assert record.trajectory["status"] == "agent_error"


@pytest.mark.parametrize(
    ("fields", "errors"),
    [
        ({"status": "error", "message": "quota"}, ("span 1: quota",)),
        ({"status": "error"}, ("span 1: error",)),
        ({"attributes": {"langfuse.observation.level": "ERROR"}}, ("span 1: error",)),
        ({"attributes": {"genkit:state": "error", "genkit:error": "bad"}}, ("span 1: bad",)),
        ({"events": [event("exception", **{"exception.type": "KeyError"})]}, ("span 1: KeyError",)),
        # It was caught, and the span says so.
        ({"events": [event("exception", **{"exception.type": "KeyError"})], "status": "ok"}, ()),
        ({"attributes": {"langfuse.observation.level": "WARNING"}}, ()),
    ],
)
def test_what_counts_as_an_error(fields: dict[str, Any], errors: tuple[str, ...]) -> None:
    attributes = {"gen_ai.prompt.0.content": "hi", **fields.pop("attributes", {})}
    assert read_one(make_span(1, attributes=attributes, **fields)).errors == errors


def test_evaluations_become_scores_checks_and_feedback() -> None:
    prefix = "gen_ai.evaluation"
    events = [
        event(
            f"{prefix}.result",
            **{
                f"{prefix}.name": "relevance",
                f"{prefix}.score.value": 0.4,
                f"{prefix}.explanation": "off topic",
            },
        ),
        event(f"{prefix}.result", **{f"{prefix}.name": "price", f"{prefix}.score.label": "fail"}),
    ]
    attributes = {
        "trace.evaluations.0.evaluation.name": "helpful",
        "trace.evaluations.0.evaluation.score": "0.5",
        "annotations.0.annotation.name": "thumb",
        "annotations.0.annotation.annotator_kind": "HUMAN",
        "annotations.0.annotation.label": "down",
        "annotations.0.annotation.explanation": "价格错了",
    }
    record = read_with(attributes, *events)
    assert record.scores == {"relevance": 0.4, "helpful": 0.5}
    assert record.checks == (Check("price", passed=False),)
    assert record.feedback == (
        Feedback("relevance", None, "off topic"),
        Feedback("thumb", "down", "价格错了"),
    )


def test_what_is_known_beside_the_conversation() -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    attributes = {
        **AGENT,
        "session.id": "s-1",
        "user.id": "u-1",
        "langfuse.trace.tags": '["618", "price"]',
        "room": "live-7",
        "input.value": "x" * 5000,
    }
    definition = {"name": "get_price", "inputSchema": {"type": "object"}}
    model = {
        "gen_ai.request.model": "qwen3",
        "ai.prompt.tools": [json.dumps({"type": "function", **definition})],
    }
    resource = {"service.name": "avatar", "service.version": commit}
    spans = [
        make_span(1, attributes=attributes, resource=resource),
        model_span(2, 1, [ASK], says("ok"), attributes=model),
    ]
    record = read_one(*spans)
    assert (record.harness_commit, record.tags) == (commit, ("618", "price"))
    assert record.happened_at == datetime(2025, 4, 30, 15, 28, 50, 1000, tzinfo=UTC)
    context = record.context
    assert (context["session"], context["user"], context["service"], context["model"]) == (
        "s-1",
        "u-1",
        "avatar",
        "qwen3",
    )
    assert context["attributes"]["room"] == "live-7"
    assert "input.value" not in context["attributes"]
    function = {"name": "get_price", "parameters": {"type": "object"}}
    assert context["tools"] == [{"type": "function", "function": function}]


def test_a_trace_without_an_agent_is_no_case() -> None:
    spans = [
        make_span(1, name="GET /", attributes={"http.route": "/"}, status="error"),
        make_span(2, 1, name="SELECT"),
    ]
    (rejected,) = assemble(spans)
    assert isinstance(rejected, Rejected)
    assert TRACE in rejected.reason


def test_parents_in_a_circle_are_read_all_the_same() -> None:
    spans = [make_span(1, 2, attributes=AGENT), model_span(2, 1, [ASK], says("89元"))]
    assert read_one(*spans).reply == "89元"


def test_spans_of_many_traces_are_told_apart() -> None:
    traces = [f"{number:032x}" for number in range(1, 4)]
    spans = [{**span, "trace_id": trace} for span in agent_trace() for trace in traces]
    assert [record.source_id for record in assemble(spans) if not isinstance(record, Rejected)] == traces


def test_a_message_that_can_t_be_read_costs_no_other_one() -> None:
    record = read_with({"gen_ai.input.messages": json.dumps([ASK, {"role": "user", "tool_calls": 5}])})
    assert dialogue(record)[0] == ("user", "3号链接多少钱？")
