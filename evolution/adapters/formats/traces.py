"""Puts the spans of a trace together into one record: the conversation with the user, and what went wrong in it."""

import logging
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.items import Item, unexpected
from evolution.adapters.formats.messages import Message, build_trajectory, last_reply, split_request
from evolution.adapters.formats.shapes import as_list, as_text, parse_json, unpack_json
from evolution.adapters.formats.span_attributes import find, find_text, list_entries
from evolution.adapters.formats.span_calls import find_model, list_calls, list_tools
from evolution.adapters.formats.span_errors import describe_error, list_errors
from evolution.adapters.formats.span_evaluations import read_evaluations
from evolution.adapters.formats.span_store import SpanStore
from evolution.adapters.formats.span_threads import Turn, find_conversation
from evolution.adapters.formats.span_tools import Placed, ToolUse, list_tool_uses, place_uses
from evolution.adapters.formats.span_tree import Span, Tree, read_span
from evolution.adapters.formats.values import RecordProblem
from evolution.ports import Record, Rejected
from harness_repo.runtime.trajectory import CallRecord

logger = logging.getLogger(__name__)

_COMMIT = re.compile(r"[0-9a-f]{40}")
_COMMITS = (
    "vcs.ref.head.revision", "vcs.repository.ref.revision", "git.commit.sha", "langfuse.release", "langfuse.version",
    "service.version", "gen_ai.agent.version",
)  # fmt: skip
_SESSIONS = (
    "session.id", "langfuse.session.id", "gen_ai.conversation.id", "traceloop.association.properties.session_id",
    "traceloop.association.properties.thread_id", "ai.telemetry.metadata.sessionId", "thread.id",
    "gcp.vertex.agent.session_id", "langsmith.trace.session_id",
)  # fmt: skip
_USERS = ("user.id", "langfuse.user.id", "traceloop.association.properties.user_id", "ai.telemetry.metadata.userId",
          "enduser.id")  # fmt: skip
_TRACE_NAMES = ("langfuse.trace.name", "traceloop.workflow.name")
_TAGS = ("tag.tags", "langfuse.trace.tags")
# What the record has elsewhere, or nobody looks for.
_KNOWN = re.compile(
    r"gen_ai\.(prompt|completion|input|output|system_instructions|tool|usage|response)|llm\.|ai\.(prompt|response|usage|"
    r"embedding|value|request|result|toolCall)|input\b|output\b|telemetry\.|logfire\.|pydantic_ai|all_messages|"
    r"final_result|gcp\.vertex\.agent\.(llm|tool)|traceloop\.entity\.(in|out)put|genkit:(in|out)put|embedding\."
)
_LONGEST = 500
_EARLIEST = datetime(2000, 1, 1, tzinfo=UTC)
_SpansOf = Callable[[Any], Iterable[dict[str, Any] | RecordProblem]]


def read_traces(items: Iterator[Item], spans_of: _SpansOf, *, source: str) -> Iterator[Record | Rejected]:
    """Read the traces of a file: what can't be read, then a record for each trace, at the line of its first span."""
    with SpanStore() as store:
        for item in items:
            found = [item.value] if isinstance(item.value, RecordProblem) else list(spans_of(item.value))
            # Several spans of one request are told apart by their number.
            are_many = len(found) > 1
            for number, span in enumerate(found, 1):
                if isinstance(span, RecordProblem):
                    yield Rejected(item.line, str(span), number if are_many else item.number)
                else:
                    store.add(span, item.line)
        for line, spans in store.traces():
            yield _assemble(spans, source, line)


def assemble(spans: Sequence[dict[str, Any]], *, source: str = "otlp") -> list[Record | Rejected]:
    """One record for each trace of these spans, in the order of their first spans; `otlp.iter_spans` makes such spans.

    A trace is Rejected in which nothing is about a model, a tool or an agent. The order of the spans changes nothing
    in a record, and its source id is the trace id, so that late spans make an update.
    """
    grouped: dict[str, list[dict[str, Any]]] = {}
    for span in spans:
        grouped.setdefault(span["trace_id"], []).append(span)
    return [_assemble(found, source, 0) for found in grouped.values()]


def _assemble(values: Sequence[dict[str, Any]], source: str, line: int) -> Record | Rejected:
    found = [read_span(span) for span in values]
    # Logfire sends a span when it starts, and again under another id when it ends.
    spans = [span for span in found if span.attributes.get("logfire.span_type") != "pending_span"] or found
    if any(span.concerns_an_agent for span in spans):
        return _read_trace_safely(spans, source, line)
    what = {"trace": found[0].trace_id, "spans": len(found)}
    text = _("trace %(trace)s: none of its %(spans)d spans is about a model, a tool or an agent")
    return Rejected(line, text % what)


def _read_trace_safely(spans: list[Span], source: str, line: int) -> Record | Rejected:
    try:
        return _read_trace(Tree(spans), source, line)
    except (TypeError, ValueError, LookupError, AttributeError, ArithmeticError, RecursionError) as error:
        # A mistake of the reader, which must not cost the other traces.
        logger.exception("trace %s can't be read", spans[0].trace_id)
        return Rejected(line, unexpected(error))


def _read_trace(tree: Tree, source: str, line: int) -> Record:
    thread = find_conversation(tree)
    placed = place_uses(thread.messages, list_tool_uses(tree))
    messages = placed.messages
    evaluations = read_evaluations(tree)
    calls = _shift(list_calls(tree, thread.turns), thread.messages, messages)
    return Record(
        source=source,
        source_id=tree.root.trace_id,
        failed=None,
        line=line,
        request=split_request(messages),
        context=_context(tree, find_model(tree, thread.turns), list_tools(tree, thread.turns)),
        trajectory=_trajectory(tree, placed, calls, thread.turns),
        reply=last_reply(messages),
        scores=evaluations.scores,
        harness_commit=_find_commit(tree),
        errors=list_errors(tree),
        checks=tuple(evaluations.checks),
        feedback=tuple(evaluations.feedback),
        has_status=True,
        happened_at=_find_moment(tree),
        tags=_list_tags(tree),
    )


def _shift(calls: list[CallRecord], before: list[Message], after: list[Message]) -> list[CallRecord]:
    """The calls with the turns that they have once calls of tools stand in the messages as turns of their own."""
    added = sum(m["role"] == "assistant" for m in after) - sum(m["role"] == "assistant" for m in before)
    if not added or not calls:
        return calls
    last = max(call.turn for call in calls)
    return [
        CallRecord(**{**vars(call), "turn": call.turn + added if call.turn == last else call.turn})
        for call in calls
    ]


def _trajectory(tree: Tree, placed: Placed, calls: list[CallRecord], turns: list[Turn]) -> dict[str, Any]:
    error = describe_error(tree.root)
    trajectory = build_trajectory(
        placed.messages,
        calls=calls,
        errors={identity: use.error for identity, use in placed.uses.items() if use.error},
        status="agent_error" if error else "ok",
        error=error,
        latency_ms=tree.root.ms,
    )
    for record in trajectory["tool_calls"]:
        if record["id"] in placed.uses:
            record["ms"] = placed.uses[record["id"]].ms
    for use in placed.loose:
        begun = [turn.number for turn in turns if turn.span.start <= use.start]
        trajectory["tool_calls"].append(_loose_call(use, max(begun, default=0)))
    return trajectory


def _loose_call(use: ToolUse, turn: int) -> dict[str, Any]:
    """A call that stands in no message: of a sub-agent, or a retrieval."""
    return {
        "turn": turn,
        "id": use.id,
        "name": use.name,
        "arguments": parse_json(use.arguments),
        "result": parse_json(use.result),
        "error": f"error: {use.error[:200]}" if use.error else None,
        "ms": use.ms,
        "fault": None,
    }


def _context(tree: Tree, model: str, tools: list[dict[str, Any]]) -> dict[str, Any]:
    """What is known of the trace beside the conversation; only what there is."""
    spans = [tree.root, *tree.spans]
    found = {
        "trace": find_text(tree.root.attributes, *_TRACE_NAMES) or tree.root.name,
        "session": _find_in(spans, _SESSIONS),
        "user": _find_in(spans, _USERS),
        "service": find_text(tree.root.resource, "service.name"),
        "model": model,
        "tools": tools,
        "attributes": _own_attributes(tree.root),
    }
    return {name: value for name, value in found.items() if value}


def _find_in(spans: Iterable[Span], names: Sequence[str]) -> str:
    return next((text for span in spans if (text := find_text(span.attributes, *names))), "")


def _own_attributes(span: Span) -> dict[str, Any]:
    """The root's attributes, and those of its resource, that are nowhere else in the record and not long."""
    both = {**span.resource, **span.attributes}
    return {
        name: value
        for name, value in sorted(both.items())
        if not _KNOWN.match(name) and value not in (None, "") and len(str(value)) <= _LONGEST
    }


def _find_commit(tree: Tree) -> str:
    for name in _COMMITS:
        for values in (tree.root.attributes, tree.root.resource, *(span.attributes for span in tree.spans)):
            found = find_text(values, name).lower()
            if _COMMIT.fullmatch(found):
                return found
    return ""


def _find_moment(tree: Tree) -> datetime | None:
    """When the trace began; None where no clock was set."""
    starts = [span.start or span.end for span in tree.spans if span.start or span.end]
    try:
        moment = datetime.fromtimestamp(min(starts) / 10**9, UTC) if starts else None
    except (ValueError, OverflowError, OSError):
        return None
    return moment if moment and moment >= _EARLIEST else None


def _list_tags(tree: Tree) -> tuple[str, ...]:
    given = [tag for span in tree.spans for name in _TAGS for tag in _read_tags(find(span.attributes, name))]
    given += [tag for span in tree.spans for name in _TAGS for tag in list_entries(span.attributes, name)]
    return tuple(dict.fromkeys(as_text(tag) for tag in given if as_text(tag)))


def _read_tags(value: Any) -> list[Any]:
    value = unpack_json(value)
    return [value] if isinstance(value, str) else as_list(value)
