"""One span in each convention: what was sent, and what came back."""

import json
from typing import Any

import pytest

from tests.evolution.adapters.formats.spans import dialogue, event, read_with

SYSTEM = {"role": "system", "content": "Be brief."}
CALL = {"id": "c1", "type": "function", "function": {"name": "get_price", "arguments": '{"link": 3}'}}
# A user asks, the model calls, the tool answers, the model says it: in OpenAI's shape.
WANTED = [
    ("system", "Be brief."),
    ("user", "3号链接多少钱？"),
    ("assistant", None, ("get_price", {"link": 3})),
    ("tool", '{"price": 89}'),
    ("assistant", "89元"),
]


def as_text(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


TODAY = {
    "gen_ai.system_instructions": as_text([{"type": "text", "content": "Be brief."}]),
    "gen_ai.input.messages": as_text(
        [
            {"role": "user", "parts": [{"type": "text", "content": "3号链接多少钱？"}]},
            {
                "role": "assistant",
                "parts": [{"type": "tool_call", "id": "c1", "name": "get_price", "arguments": {"link": 3}}],
            },
            {
                "role": "tool",
                "parts": [{"type": "tool_call_response", "id": "c1", "response": {"price": 89}}],
            },
        ]
    ),
    "gen_ai.output.messages": as_text(
        [{"role": "assistant", "parts": [{"type": "text", "content": "89元"}], "finish_reason": "stop"}]
    ),
}
BEFORE = [
    event("gen_ai.system.message", content="Be brief."),
    event("gen_ai.user.message", content="3号链接多少钱？", role="user"),
    event("gen_ai.assistant.message", tool_calls=as_text([CALL])),
    event("gen_ai.tool.message", id="c1", content='{"price": 89}'),
    event(
        "gen_ai.choice",
        index=0,
        finish_reason="stop",
        message=as_text({"role": "assistant", "content": "89元"}),
    ),
]
FIRST = {
    "gen_ai.prompt.0.role": "system",
    "gen_ai.prompt.0.content": "Be brief.",
    "gen_ai.prompt.1.role": "user",
    "gen_ai.prompt.1.content": as_text([{"type": "text", "text": "3号链接多少钱？"}]),
    "gen_ai.prompt.2.role": "assistant",
    "gen_ai.prompt.2.tool_calls.0.id": "c1",
    "gen_ai.prompt.2.tool_calls.0.name": "get_price",
    "gen_ai.prompt.2.tool_calls.0.arguments": '{"link": 3}',
    # The order of the attributes says nothing.
    "gen_ai.prompt.10.role": "tool",
    "gen_ai.prompt.10.tool_call_id": "c1",
    "gen_ai.prompt.10.content": '{"price": 89}',
    "gen_ai.completion.0.role": "assistant",
    "gen_ai.completion.0.content": "89元",
}
OPENAI = [
    SYSTEM,
    {"role": "user", "content": "3号链接多少钱？"},
    {"role": "assistant", "content": None, "tool_calls": [CALL]},
    {"role": "tool", "tool_call_id": "c1", "content": '{"price": 89}'},
]
VERCEL = {
    "ai.operationId": "ai.generateText.doGenerate",
    "ai.prompt.messages": as_text(
        [
            SYSTEM,
            {"role": "user", "content": [{"type": "text", "text": "3号链接多少钱？"}]},
            {
                "role": "assistant",
                "content": [
                    {"type": "tool-call", "toolCallId": "c1", "toolName": "get_price", "input": {"link": 3}}
                ],
            },
            {
                "role": "tool",
                "content": [
                    {
                        "type": "tool-result",
                        "toolCallId": "c1",
                        "toolName": "get_price",
                        "output": {"type": "json", "value": {"price": 89}},
                    }
                ],
            },
        ]
    ),
    "ai.response.text": "89元",
}
ADK = {
    "gcp.vertex.agent.llm_request": as_text(
        {
            "config": {"system_instruction": "Be brief."},
            "contents": [
                {"role": "user", "parts": [{"text": "3号链接多少钱？"}]},
                {
                    "role": "model",
                    "parts": [{"function_call": {"id": "c1", "name": "get_price", "args": {"link": 3}}}],
                },
                {
                    "role": "user",
                    "parts": [
                        {"function_response": {"id": "c1", "name": "get_price", "response": {"price": 89}}}
                    ],
                },
            ],
        }
    ),
    "gcp.vertex.agent.llm_response": as_text({"content": {"role": "model", "parts": [{"text": "89元"}]}}),
}
GENKIT = {
    "genkit:metadata:subtype": "model",
    "genkit:input": as_text(
        {
            "messages": [
                {"role": "system", "content": [{"text": "Be brief."}]},
                {"role": "user", "content": [{"text": "3号链接多少钱？"}]},
                {
                    "role": "model",
                    "content": [{"toolRequest": {"ref": "c1", "name": "get_price", "input": {"link": 3}}}],
                },
                {
                    "role": "tool",
                    "content": [
                        {"toolResponse": {"ref": "c1", "name": "get_price", "output": {"price": 89}}}
                    ],
                },
            ]
        }
    ),
    "genkit:output": as_text(
        {"message": {"role": "model", "content": [{"text": "89元"}]}, "finishReason": "stop"}
    ),
}
BEDROCK = [
    event("gen_ai.system.message", content=as_text([{"text": "Be brief."}])),
    event("gen_ai.user.message", content=as_text([{"text": "3号链接多少钱？"}])),
    event(
        "gen_ai.assistant.message",
        content=as_text([{"toolUse": {"toolUseId": "c1", "name": "get_price", "input": {"link": 3}}}]),
    ),
    event(
        "gen_ai.tool.message",
        content=as_text([{"toolResult": {"toolUseId": "c1", "content": [{"text": '{"price": 89}'}]}}]),
    ),
    event("gen_ai.choice", message=as_text([{"text": "89元"}])),
]
LOGFIRE = as_text(
    [
        {"event.name": "gen_ai.system.message", "role": "system", "content": "Be brief."},
        {"event.name": "gen_ai.user.message", "role": "user", "content": "3号链接多少钱？"},
        {"event.name": "gen_ai.assistant.message", "role": "assistant", "tool_calls": [CALL]},
        {"event.name": "gen_ai.tool.message", "role": "tool", "id": "c1", "content": '{"price": 89}'},
        {"event.name": "gen_ai.choice", "index": 0, "message": {"role": "assistant", "content": "89元"}},
    ]
)
SAID = {"role": "assistant", "content": "89元"}
DIALECTS: dict[str, tuple[dict[str, Any], list[dict[str, Any]]]] = {
    "today, attributes": (TODAY, []),
    "today, an event": ({}, [event("gen_ai.client.inference.operation.details", **TODAY)]),
    "today, no text but values": ({key: json.loads(value) for key, value in TODAY.items()}, []),
    "events": ({}, BEFORE),
    "events, bodies": (
        {},
        [event(entry["name"], **{"gen_ai.event.content": as_text(entry["attributes"])}) for entry in BEFORE],
    ),
    "events of Strands": ({}, BEDROCK),
    "first generation": (dict(reversed(FIRST.items())), []),
    "first generation, before that": (
        {
            key.replace("gen_ai.prompt", "llm.prompts").replace("gen_ai.completion", "llm.completions"): value
            for key, value in FIRST.items()
        },
        [],
    ),
    "one attribute": ({"gen_ai.prompt": as_text(OPENAI), "gen_ai.completion": as_text([SAID])}, []),
    "one attribute, a request": (
        {
            "gen_ai.prompt": as_text({"messages": OPENAI}),
            "gen_ai.completion": as_text({"choices": [{"message": SAID}]}),
        },
        [],
    ),
    "openlit, JSON": (
        {},
        [
            event("gen_ai.content.prompt", **{"gen_ai.prompt": as_text(OPENAI)}),
            event("gen_ai.content.completion", **{"gen_ai.completion": "89元"}),
        ],
    ),
    "vercel": (VERCEL, []),
    "adk": (ADK, []),
    "genkit": (GENKIT, []),
    "pydantic ai": ({"pydantic_ai.all_messages": as_text([*OPENAI, SAID]), "final_result": "89元"}, []),
    "pydantic ai, events": ({"all_messages_events": LOGFIRE, "final_result": "89元"}, []),
    "logfire": (
        {
            "request_data": as_text({"model": "gpt-4o", "messages": OPENAI}),
            "response_data": as_text({"message": SAID}),
        },
        [],
    ),
    "langfuse": (
        {
            "langfuse.observation.type": "generation",
            "langfuse.observation.input": as_text(OPENAI),
            "langfuse.observation.output": as_text(SAID),
        },
        [],
    ),
    "openinference, raw": (
        {
            "openinference.span.kind": "LLM",
            "input.value": as_text({"messages": OPENAI}),
            "output.value": as_text({"choices": [{"message": SAID}]}),
        },
        [],
    ),
}


@pytest.mark.parametrize("name", sorted(DIALECTS))
def test_every_convention_tells_the_same_conversation(name: str) -> None:
    attributes, events = DIALECTS[name]
    said = dialogue(read_with(attributes, *events))
    read = [
        (
            role,
            content,
            *((tool, json.loads(given) if isinstance(given, str) else given) for tool, given in made),
        )
        for role, content, *made in said
    ]
    assert read == WANTED


def test_openlit_s_transcript_has_a_line_for_each_message() -> None:
    text = "system: Be brief.\nuser: What is 2 + 2?\nAnd: 3 + 3?\nassistant: 4"
    record = read_with({}, event("gen_ai.content.prompt", **{"gen_ai.prompt": text}))
    assert dialogue(record) == [
        ("system", "Be brief."),
        ("user", "What is 2 + 2?\nAnd: 3 + 3?"),
        ("assistant", "4"),
    ]


def test_the_convention_with_content_counts_where_several_stand_side_by_side() -> None:
    record = read_with({"llm.input_messages.0.message.role": "user", "gen_ai.prompt.0.content": "hi"})
    assert dialogue(record) == [("user", "hi")]


def test_arguments_are_kept_as_they_stand() -> None:
    output = {
        "role": "assistant",
        "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": '{"n": 1.10}'}}],
    }
    record = read_with({"gen_ai.output.messages": as_text([output])})
    assert dialogue(record) == [("assistant", None, ("f", '{"n": 1.10}'))]


def test_a_number_beyond_64_bits_in_a_text_is_not_rounded() -> None:
    part = {"type": "tool_call", "id": "1", "name": "f", "arguments": {"order": 98765432109876543210}}
    record = read_with({"gen_ai.output.messages": as_text([{"role": "assistant", "parts": [part]}])})
    assert record.trajectory["tool_calls"][0]["arguments"] == {"order": 98765432109876543210}


def test_thinking_stands_apart() -> None:
    parts = [{"type": "reasoning", "content": "hmm"}, {"type": "text", "content": "4"}]
    record = read_with({"gen_ai.output.messages": as_text([{"role": "assistant", "parts": parts}])})
    assert (record.reply, record.trajectory["calls"][0]["reasoning"]) == ("4", "hmm")
    record = read_with({**VERCEL, "ai.response.reasoning": "hmm"})
    assert (record.reply, [call["reasoning"] for call in record.trajectory["calls"]]) == ("89元", ["hmm"])


def test_images_are_kept_as_a_reference() -> None:
    pixel = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    parts = [
        {"type": "text", "content": "看图"},
        {"type": "blob", "modality": "image", "mime_type": "image/png", "content": pixel},
        {"type": "uri", "modality": "image", "uri": "https://example.com/a.png"},
    ]
    record = read_with({"gen_ai.input.messages": as_text([{"role": "user", "parts": parts}])})
    ((_role, text),) = dialogue(record)
    assert pixel not in text
    assert "image/png, 70 bytes]" in text
    assert text.endswith("[image: https://example.com/a.png]")


@pytest.mark.parametrize("index", ["99999999999999999999", "-1", "__proto__", "１"])
def test_an_index_that_is_none_adds_no_message(index: str) -> None:
    record = read_with({"gen_ai.prompt.0.content": "hi", f"gen_ai.prompt.{index}.content": "no"})
    assert dialogue(record) == [("user", "hi")]
