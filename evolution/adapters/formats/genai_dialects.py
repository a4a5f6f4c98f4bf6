"""What a span says was sent to a model and came back, in each convention that there is or was.

Every dialect is a function from a span to `Said`; the first one that has something to say of one side counts for it.
The messages are the convention's own, for `messages.check_messages` to read, with OpenAI's roles.
https://opentelemetry.io/docs/specs/semconv/gen-ai/ and the projects named below.
"""

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from evolution.adapters.formats.genai_payloads import (
    as_message,
    find_messages,
    read_gemini_request,
    read_messages,
    read_parts_of,
    read_system,
)
from evolution.adapters.formats.openinference_messages import read_openinference
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, unpack_json
from evolution.adapters.formats.span_attributes import find, find_text, list_entries, listed
from evolution.adapters.formats.span_tree import Span

Message = dict[str, Any]


@dataclass
class Said:
    """Messages sent to a model and what it answered, as the convention has them."""

    inputs: list[Message] = field(default_factory=list)
    outputs: list[Message] = field(default_factory=list)


def read_said(span: Span) -> Said:
    """What was said in a span; empty lists where it doesn't say."""
    found = Said()
    for dialect in DIALECTS:
        said = dialect(span)
        found.inputs = found.inputs or said.inputs
        found.outputs = found.outputs or said.outputs
        if found.inputs and found.outputs:
            break
    if not any(message["role"] == "system" for message in found.inputs):
        found.inputs = [*_read_instructions(span), *found.inputs]
    return found


def _read_instructions(span: Span) -> list[Message]:
    layers = (span.attributes, *(event.attributes for event in span.events))
    given = (find(values, "gen_ai.system_instructions") for values in layers)
    return next((system for value in given if (system := read_system(value))), [])


def _read_messages_attributes(span: Span) -> Said:
    """OpenTelemetry since 1.37: messages with parts, as attributes of the span or of an event."""
    layers = [span.attributes, *(event.attributes for event in span.events)]
    said = Said()
    for values in layers:
        inputs = find(values, "gen_ai.input.messages", "gen_ai.input_messages")
        outputs = find(values, "gen_ai.output.messages", "gen_ai.output_messages")
        said.inputs = said.inputs or read_messages(inputs, "user")
        said.outputs = said.outputs or read_messages(outputs, "assistant")
    return said


def _read_pydantic(span: Span) -> Said:
    """Pydantic AI and Logfire: all messages of a run in one attribute, its last answer in another."""
    messages = find(span.attributes, "pydantic_ai.all_messages")
    inputs = read_messages(messages, "user") if messages is not None else []
    if not inputs:
        events = find(span.attributes, "all_messages_events", "events")
        inputs = [
            message
            for event in as_list(unpack_json(events))
            if isinstance(event, dict)
            for message in _read_event(as_text(event.get("event.name")), event)
        ]
    final = find(span.attributes, "final_result")
    outputs = [] if final is None else read_messages(final, "assistant")
    return Said(inputs, outputs)


def _read_logfire(span: Span) -> Said:
    """Logfire's instrumentation of clients: the request and the response as JSON."""
    request, response = find(span.attributes, "request_data"), find(span.attributes, "response_data")
    return Said(find_messages(request, "user"), read_messages(response, "assistant"))


def _read_events(span: Span) -> Said:
    """OpenTelemetry up to 1.36: an event for each message."""
    said = Said()
    for event in span.events:
        side = said.outputs if event.name in {"gen_ai.choice", "gen_ai.content.completion"} else said.inputs
        side += _read_event(event.name, event.attributes)
    return said


_EVENT_ROLES = {
    "gen_ai.system.message": "system", "gen_ai.user.message": "user", "gen_ai.assistant.message": "assistant",
    "gen_ai.tool.message": "tool", "gen_ai.choice": "assistant",
}  # fmt: skip


def _read_event(name: str, attributes: dict[str, Any]) -> list[Message]:
    if name == "gen_ai.content.prompt":
        return _read_transcript(find(attributes, "gen_ai.prompt"), "user")
    if name == "gen_ai.content.completion":
        return _read_transcript(find(attributes, "gen_ai.completion"), "assistant")
    if name not in _EVENT_ROLES:
        return []
    # Semantic Kernel and Azure have the whole body in one attribute.
    whole = as_dict(unpack_json(find(attributes, "gen_ai.event.content", "event_body")))
    values = {**attributes, **whole}
    message = unpack_json(values.get("message"))
    if isinstance(message, str | list):
        message = {"content": message}
    body = {**values, **as_dict(message)}
    # Flattened by the writers that can't nest: message.content, message.tool_calls.
    body |= {key.removeprefix("message."): body[key] for key in values if key.startswith("message.")}
    return _read_body(body, _EVENT_ROLES[name])


def _read_body(body: dict[str, Any], role: str) -> list[Message]:
    content = read_parts_of(body.get("content"))
    calls = [call for call in as_list(unpack_json(body.get("tool_calls"))) if isinstance(call, dict)]
    if content is None and not calls:
        return []
    message = as_message(as_text(body.get("role")) or role, content)
    if calls:
        message["tool_calls"] = calls
    if message["role"] == "tool":
        message["tool_call_id"] = as_text(body.get("id"))
    return [message]


_SPEAKER = re.compile(r"^(system|developer|user|assistant|tool): ", re.MULTILINE)


def _read_transcript(value: Any, role: str) -> list[Message]:
    """OpenLIT's text with a line "role: …" for each message, or the messages as JSON."""
    unpacked = unpack_json(value)
    if not isinstance(unpacked, str) or role == "assistant" or not _SPEAKER.match(unpacked):
        return read_messages(unpacked, role)
    _before, *pieces = _SPEAKER.split(unpacked)
    return [
        as_message(speaker, text.removesuffix("\n"))
        for speaker, text in zip(pieces[::2], pieces[1::2], strict=True)
    ]


def _read_flattened(span: Span) -> Said:
    """Traceloop's attributes, the first generation: gen_ai.prompt.0.role, llm.completions.0.content."""
    said = Said()
    for inputs, outputs in (("gen_ai.prompt", "gen_ai.completion"), ("llm.prompts", "llm.completions")):
        said.inputs = said.inputs or _read_indexed(span, inputs, "user")
        said.outputs = said.outputs or _read_indexed(span, outputs, "assistant")
    return said


def _read_indexed(span: Span, name: str, role: str) -> list[Message]:
    entries = [entry for entry in list_entries(span.attributes, name) if isinstance(entry, dict)]
    found = [message for entry in entries for message in _read_entry(entry, role)]
    if found:
        return found
    alone = {key: find(span.attributes, f"{name}.{key}") for key in ("role", "content")}
    if alone["content"] is not None:
        return [as_message(as_text(alone["role"]) or role, unpack_json(alone["content"]))]
    value = find(span.attributes, name)
    return _read_transcript(value, role) if isinstance(value, str) else []


def _read_entry(entry: dict[str, Any], role: str) -> list[Message]:
    calls = [call for call in listed(entry.get("tool_calls")) if isinstance(call, dict)]
    content = entry.get("content") if entry.get("role") == "tool" else read_parts_of(entry.get("content"))
    if content is None and not calls:
        return []
    message = as_message(as_text(entry.get("role")) or role, content)
    if calls:
        message["tool_calls"] = calls
    if message["role"] == "tool":
        message["tool_call_id"] = as_text(entry.get("tool_call_id"))
    if isinstance(entry.get("reasoning"), str):
        message["reasoning"] = entry["reasoning"]
    return [message]


def _read_of_openinference(span: Span) -> Said:
    return Said(*read_openinference(span.attributes))


def _read_vercel(span: Span) -> Said:
    """The Vercel AI SDK: ai.prompt, ai.prompt.messages, ai.response.text, ai.response.toolCalls."""
    inputs = read_messages(find(span.attributes, "ai.prompt.messages"), "user")
    if not inputs:
        prompt = unpack_json(find(span.attributes, "ai.prompt"))
        inputs = [
            *read_system(as_dict(prompt).get("system")),
            *read_messages(as_dict(prompt).get("messages") or as_dict(prompt).get("prompt"), "user"),
        ]
        inputs = inputs if isinstance(prompt, dict) else read_messages(prompt, "user")
    text = find(span.attributes, "ai.response.text", "ai.result.text")
    text = text or find(span.attributes, "ai.response.object", "ai.result.object")
    calls = unpack_json(find(span.attributes, "ai.response.toolCalls", "ai.result.toolCalls"))
    calls = [call for call in as_list(calls) if isinstance(call, dict)]
    thought = find_text(span.attributes, "ai.response.reasoning", "ai.result.reasoning")
    if not (text or calls or thought):
        return Said(inputs)
    message = as_message("assistant", text or None)
    message |= {"tool_calls": calls} if calls else {}
    message |= {"reasoning": thought} if thought else {}
    return Said(inputs, [message])


def _read_adk(span: Span) -> Said:
    """Google's ADK: the request to Gemini and its response as JSON."""
    request = as_dict(unpack_json(find(span.attributes, "gcp.vertex.agent.llm_request")))
    response = as_dict(unpack_json(find(span.attributes, "gcp.vertex.agent.llm_response")))
    content = response.get("content")
    return Said(read_gemini_request(request), read_messages(content, "assistant") if content else [])


DIALECTS: tuple[Callable[[Span], Said], ...] = (
    _read_messages_attributes,
    _read_pydantic,
    _read_logfire,
    _read_events,
    _read_flattened,
    _read_of_openinference,
    _read_vercel,
    _read_adk,
)
