"""Spans of one trace: what kind each is, which stands in which, and which of them is the root."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from evolution.adapters.formats.shapes import as_dict, as_list, as_text
from evolution.adapters.formats.span_attributes import find, find_text

MODEL, TOOL, AGENT, RETRIEVER, EMBEDDING, ASIDE = "model", "tool", "agent", "retriever", "embedding", "aside"
# What a convention calls a kind of span -> ours; "aside" is work about the conversation that is no part of it.
_KINDS = {
    "llm": MODEL, "chat": MODEL, "chat_model": MODEL, "completion": MODEL, "text_completion": MODEL,
    "generate_content": MODEL, "generation": MODEL, "model": MODEL, "rerank": RETRIEVER,
    "tool": TOOL, "execute_tool": TOOL, "function": TOOL, "tool.v2": TOOL,
    "agent": AGENT, "invoke_agent": AGENT, "create_agent": AGENT, "invoke_workflow": AGENT, "chain": AGENT,
    "workflow": AGENT, "task": AGENT, "flow": AGENT, "span": AGENT, "action": AGENT,
    "retriever": RETRIEVER, "retrieval": RETRIEVER, "reranker": RETRIEVER,
    "embedding": EMBEDDING, "embeddings": EMBEDDING, "embedder": EMBEDDING,
    "evaluator": ASIDE, "guardrail": ASIDE, "prompt": ASIDE,
}  # fmt: skip
_KIND_NAMES = (
    "langfuse.observation.type", "openinference.span.kind", "traceloop.span.kind", "gen_ai.operation.name",
    "genkit:metadata:subtype", "mlflow.spanType", "llm.request.type", "langsmith.span.kind",
)  # fmt: skip
_TOOL_NAMES = ("gen_ai.tool.name", "ai.toolCall.name")
# Attributes, and names of scopes, by which a span is known to be about an agent.
_SIGNS = (
    "gen_ai.", "llm.", "openinference.", "traceloop.", "ai.", "langfuse.", "genkit:", "pydantic_ai.", "mlflow.span",
    "gcp.vertex.agent.", "input.value", "output.value", "all_messages_events", "langsmith.", "request_data",
)  # fmt: skip
_SIGNS_NESTED = frozenset({"gen_ai", "llm", "openinference"})
_SCOPES = (
    "openinference",
    "gen_ai",
    "genai",
    "langfuse",
    "gcp.vertex.agent",
    "genkit",
    "pydantic-ai",
    "litellm",
)


@dataclass(frozen=True)
class Event:
    """Something that a span tells of a moment in it."""

    name: str
    attributes: dict[str, Any]


@dataclass(frozen=True)
class Span:
    """One span of a trace; times are nanoseconds since 1970, 0 where there is none."""

    trace_id: str
    span_id: str
    parent_id: str = ""
    name: str = ""
    start: int = 0
    end: int = 0
    attributes: dict[str, Any] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    # ok, error, or empty for unset
    status: str = ""
    message: str = ""
    scope: str = ""
    resource: dict[str, Any] = field(default_factory=dict)

    @cached_property
    def kind(self) -> str:
        """What it is, by the first convention that says so; empty where none does."""
        for name in _KIND_NAMES:
            if kind := _KINDS.get(find_text(self.attributes, name).strip('"').lower()):
                return kind
        if find(self.attributes, *_TOOL_NAMES) is not None:
            return TOOL
        return _read_vercel_kind(find_text(self.attributes, "ai.operationId"))

    @property
    def ms(self) -> float:
        """How long it took; 0 where one of its times is missing."""
        return (self.end - self.start) / 10**6 if 0 < self.start <= self.end else 0.0

    @property
    def concerns_an_agent(self) -> bool:
        """Whether anything in it is about a model, a tool or an agent."""
        names = [*self.attributes, *(event.name for event in self.events)]
        is_signed = any(name.startswith(_SIGNS) or name in _SIGNS_NESTED for name in names)
        return is_signed or bool(self.kind) or self.scope.startswith(_SCOPES)


def _read_vercel_kind(operation: str) -> str:
    if operation.endswith((".doGenerate", ".doStream")):
        return MODEL
    if operation.startswith("ai.embed"):
        return EMBEDDING
    return AGENT if operation else ""


def read_span(values: dict[str, Any]) -> Span:
    """A span of the dictionary that `otlp.iter_spans` makes of one; what is missing there is empty."""
    texts = ("trace_id", "span_id", "parent_id", "name", "status", "message", "scope")
    events = [
        Event(as_text(as_dict(event).get("name")), as_dict(as_dict(event).get("attributes")))
        for event in as_list(values.get("events"))
    ]
    return Span(
        **{name: as_text(values.get(name)) for name in texts},
        start=_as_int(values.get("start")),
        end=_as_int(values.get("end")),
        attributes=as_dict(values.get("attributes")),
        events=events,
        resource=as_dict(values.get("resource")),
    )


def _as_int(value: Any) -> int:
    return value if isinstance(value, int) and not isinstance(value, bool) else 0


class Tree:
    """The spans of one trace in the order of their starts; parents that are missing, or stand in a circle, are none."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self._by_id: dict[str, Span] = {}
        for span in spans:
            known = self._by_id.get(span.span_id)
            # Of a span that was sent twice the fuller one counts.
            if known is None or _fullness(span) >= _fullness(known):
                self._by_id[span.span_id] = span
        self.spans = sorted(self._by_id.values(), key=lambda span: (span.start or span.end, span.span_id))

    @cached_property
    def root(self) -> Span:
        """The span in which the others stand; of several the one that starts first."""
        roots = [span for span in self.spans if not self.parent_of(span)]
        return (roots or self.spans)[0]

    def parent_of(self, span: Span) -> Span | None:
        """The span that this one stands in, as far as it was sent."""
        parent = self._by_id.get(span.parent_id)
        return None if parent is span else parent

    def ancestors_of(self, span: Span) -> Iterator[Span]:
        """The spans that this one stands in, the nearest first."""
        seen = {span.span_id}
        parent = self.parent_of(span)
        while parent is not None and parent.span_id not in seen:
            yield parent
            seen.add(parent.span_id)
            parent = self.parent_of(parent)

    def stands_in(self, span: Span, kinds: frozenset[str]) -> bool:
        """Whether one of the spans around this one is of these kinds."""
        return any(ancestor.kind in kinds for ancestor in self.ancestors_of(span))


def _fullness(span: Span) -> tuple[int, int, int]:
    return (span.end > 0, len(span.attributes) + len(span.events), span.end)
