"""The calls of a model in a trace as the trajectory has them, and what was said to the model beside the messages."""

from collections.abc import Iterator
from typing import Any

from evolution.adapters.formats.shapes import as_dict, as_list, as_text, unpack_json
from evolution.adapters.formats.span_attributes import find, find_text, list_entries, listed
from evolution.adapters.formats.span_threads import Turn
from evolution.adapters.formats.span_tree import AGENT, Span, Tree
from evolution.adapters.formats.values import number
from harness_repo.runtime.trajectory import MOST, CallRecord

_MODELS = (
    "gen_ai.response.model", "gen_ai.request.model", "llm.model_name", "llm.response.model_name",
    "llm.request.model_name", "ai.response.model", "ai.model.id", "langfuse.observation.model.name", "model_name",
)  # fmt: skip
_PROMPT = ("gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens", "llm.token_count.prompt",
           "ai.usage.inputTokens", "ai.usage.promptTokens", "llm.usage.prompt_tokens")  # fmt: skip
_COMPLETION = ("gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens", "llm.token_count.completion",
               "ai.usage.outputTokens", "ai.usage.completionTokens", "llm.usage.completion_tokens")  # fmt: skip
_CACHED = ("gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
           "llm.token_count.prompt_details.cache_read", "ai.usage.cachedInputTokens")  # fmt: skip
_FINISH = ("gen_ai.response.finish_reasons", "gen_ai.completion.0.finish_reason", "ai.response.finishReason",
           "llm.finish_reason", "gen_ai.response.finish_reason")  # fmt: skip
_DEFINITIONS = ("gen_ai.tool.definitions", "ai.prompt.tools", "tools", "gen_ai.request.tools")


def list_calls(tree: Tree, turns: list[Turn]) -> list[CallRecord]:
    """The calls of the conversation's turns; a span around other calls of it is none itself."""
    around = {ancestor.span_id for turn in turns for ancestor in tree.ancestors_of(turn.span)}
    made = [turn for turn in turns if turn.span.span_id not in around and turn.span.kind != AGENT]
    if not made and not around:
        made = turns
    return [_read_call(turn) for turn in made]


def find_model(tree: Tree, turns: list[Turn]) -> str:
    """The model that answered last in the conversation, else any that the trace names."""
    spans = [*(turn.span for turn in reversed(turns)), *tree.spans]
    return next((name for span in spans if (name := find_text(span.attributes, *_MODELS))), "")


def list_tools(tree: Tree, turns: list[Turn]) -> list[dict[str, Any]]:
    """The tools that the model was offered, as OpenAI's definitions; each name once."""
    spans = [*(turn.span for turn in reversed(turns)), *tree.spans]
    for span in spans:
        tools = {as_text(tool["function"]["name"]): tool for tool in _read_tools(span)}
        if tools:
            return list(tools.values())
    return []


def _read_call(turn: Turn) -> CallRecord:
    attributes = turn.span.attributes
    return CallRecord(
        turn=turn.number,
        ms=turn.span.ms,
        prompt_tokens=_count(find(attributes, *_PROMPT)),
        completion_tokens=_count(find(attributes, *_COMPLETION)),
        model=find_text(attributes, *_MODELS),
        cached_tokens=_count(find(attributes, *_CACHED)),
        finish_reason=_read_finish(find(attributes, *_FINISH)),
    )


def _count(value: Any) -> int:
    found = number(value)
    return int(found) if found is not None and 0 <= found <= MOST else 0


def _read_finish(value: Any) -> str:
    value = unpack_json(value)
    return as_text(value[0]) if isinstance(value, list) and value else as_text(value)


def _read_tools(span: Span) -> Iterator[dict[str, Any]]:
    for name in _DEFINITIONS:
        for given in as_list(unpack_json(find(span.attributes, name))):
            yield from _read_definition(as_dict(unpack_json(given)))
    for entry in list_entries(span.attributes, "llm.tools"):
        yield from _read_definition(
            as_dict(unpack_json(as_dict(as_dict(entry).get("tool")).get("json_schema")))
        )
    for entry in list_entries(span.attributes, "llm.request.functions"):
        yield from _read_definition(as_dict(entry))
    request = as_dict(unpack_json(find(span.attributes, "gcp.vertex.agent.llm_request")))
    for offered in listed(as_dict(request.get("config")).get("tools")):
        for given in listed(as_dict(offered).get("function_declarations")):
            yield from _read_definition(as_dict(given))


def _read_definition(given: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """One of OpenAI's, or with the same fields one level up; other providers call the parameters otherwise."""
    function = as_dict(given.get("function")) or given
    if not as_text(function.get("name")):
        return
    names = ("parameters", "inputSchema", "input_schema", "parametersJsonSchema")
    parameters = next((found for name in names if (found := as_dict(unpack_json(function.get(name))))), {})
    schema = as_dict(parameters.get("jsonSchema")) or parameters
    described = {"description": function["description"]} if as_text(function.get("description")) else {}
    yield {"type": "function", "function": {"name": function["name"], **described, "parameters": schema}}
