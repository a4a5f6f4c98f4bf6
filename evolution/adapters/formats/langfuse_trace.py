"""One trace of Langfuse with its observations as a record."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from django.utils.translation import gettext as _

from evolution.adapters.formats.chats import read_tools, unpack_value
from evolution.adapters.formats.logged_runs import Run, Step, assemble, find_commit
from evolution.adapters.formats.messages import conversation
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, parse_json, read_time
from evolution.adapters.formats.values import RecordProblem, number
from evolution.ports import Feedback, Record

SOURCE = "langfuse"
_KINDS: Mapping[str, Literal["llm", "tool"]] = {"GENERATION": "llm", "TOOL": "tool"}
_MOST_TOKENS = 2**31 - 1


def read_trace(trace: dict[str, Any], observations: list[dict[str, Any]], line: int) -> Record:
    """The record of a trace; raises RecordProblem when nothing was said in it and nothing failed."""
    steps = [read_observation(observation) for observation in _merge_twice(observations)]
    roots = [step for step in steps if not step.parent_id]
    # A trace's own are JSON in a text, even where they are a text themselves.
    asked, answered = parse_json(trace.get("input")), parse_json(trace.get("output"))
    run = assemble(
        steps,
        roots[0].input if asked is None and roots else asked,
        roots[-1].output if answered is None and roots else answered,
    )
    if not run.messages and not run.errors:
        raise RecordProblem(_("the trace has neither input nor output"))
    said = conversation(run.messages, calls=run.calls)
    scores = [as_dict(score) for score in as_list(trace.get("scores"))]
    return Record(
        source=SOURCE,
        source_id=as_text(trace.get("id")),
        failed=None,
        line=line,
        request=said.request,
        context=_read_context(trace, run),
        trajectory=said.trajectory,
        reply=said.reply,
        scores=dict(_list_scores(scores)),
        findings=[
            {"kind": as_text(score.get("name")), "text": as_text(score.get("comment"))}
            for score in scores
            if as_text(score.get("comment")) and _is_number(score)
        ],
        errors=run.errors,
        feedback=(*_list_feedback(scores), *_list_corrections(trace, said.reply)),
        # Every observation has a level.
        has_status=bool(observations),
        happened_at=read_time(trace.get("timestamp"))
        or min(filter(None, (s.start for s in steps)), default=None),
        harness_commit=_find_commit(trace),
        tags=tuple(as_text(tag)[:64] for tag in as_list(trace.get("tags")) if as_text(tag)),
    )


def _merge_twice(observations: list[dict[str, Any]]) -> Iterable[dict[str, Any]]:
    """Observations may stand in the file twice, once without what was said in them."""
    merged: dict[str, dict[str, Any]] = {}
    for observation in observations:
        said = {name: value for name, value in observation.items() if value is not None}
        merged[as_text(observation["id"])] = {**merged.get(as_text(observation["id"]), {}), **said}
    return merged.values()


def read_observation(observation: dict[str, Any]) -> Step:
    """An observation as a step of a run."""
    usage = as_dict(observation.get("usageDetails")) or as_dict(observation.get("usage"))
    failed = observation.get("level") == "ERROR"
    message = as_text(observation.get("statusMessage")).strip()
    return Step(
        id=as_text(observation.get("id")),
        parent_id=as_text(observation.get("parentObservationId")),
        kind=_KINDS.get(as_text(observation.get("type")), "other"),
        name=as_text(observation.get("name")),
        start=read_time(observation.get("startTime")),
        end=read_time(observation.get("endTime")),
        input=observation.get("input"),
        output=observation.get("output"),
        error=(message or "ERROR") if failed else "",
        model=as_text(observation.get("model") or observation.get("providedModelName")),
        prompt_tokens=_count(usage.get("input", observation.get("promptTokens"))),
        completion_tokens=_count(usage.get("output", observation.get("completionTokens"))),
        cached_tokens=_count(usage.get("input_cache_read", usage.get("input_cached_tokens"))),
        tools=_read_offered(observation),
    )


def _read_offered(observation: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The tools that a model was offered, which instrumentations keep among the attributes."""
    defined = as_dict(observation.get("toolDefinitions"))
    if defined:
        return read_tools([{"name": name, **as_dict(unpack_value(tool))} for name, tool in defined.items()])
    attributes = as_dict(as_dict(unpack_value(observation.get("metadata"))).get("attributes"))
    parameters = as_dict(unpack_value(attributes.get("model_request_parameters")))
    places = (
        attributes.get("gen_ai.tool.definitions"),
        attributes.get("ai.prompt.tools"),
        parameters.get("function_tools"),
    )
    return next((tools for place in places if (tools := read_tools(as_list(unpack_value(place))))), [])


def _read_context(trace: Mapping[str, Any], run: Run) -> dict[str, Any]:
    named = {
        "trace": as_text(trace.get("name")),
        "session": as_text(trace.get("sessionId")),
        "user": as_text(trace.get("userId")),
        "environment": as_text(trace.get("environment")),
        "release": as_text(trace.get("release")),
        "version": as_text(trace.get("version")),
        "model": run.model,
        "tools": run.tools,
    }
    return {name: value for name, value in named.items() if value}


def _find_commit(trace: Mapping[str, Any]) -> str:
    metadata = as_dict(unpack_value(trace.get("metadata")))
    places = (metadata, as_dict(metadata.get("attributes")), as_dict(metadata.get("resourceAttributes")))
    return find_commit(as_text(trace.get("release")), as_text(trace.get("version")), *places)


def _is_number(score: Mapping[str, Any]) -> bool:
    is_said = (
        as_text(score.get("dataType")) in {"", "NUMERIC", "BOOLEAN"} and score.get("source") != "ANNOTATION"
    )
    return is_said and number(score.get("value")) is not None


def _list_scores(scores: list[dict[str, Any]]) -> Iterator[tuple[str, float]]:
    """Numbers by name; of several with one name the last."""
    for score in scores:
        value = number(score.get("value"))
        if _is_number(score) and value is not None and as_text(score.get("name")):
            yield as_text(score["name"]), value


def _list_feedback(scores: list[dict[str, Any]]) -> Iterator[Feedback]:
    for score in scores:
        if not _is_number(score) and score.get("dataType") != "CORRECTION":
            yield Feedback(as_text(score.get("name")), _read_value(score), as_text(score.get("comment")))


def _read_value(score: Mapping[str, Any]) -> float | str | bool | None:
    value = number(score.get("value"))
    if score.get("dataType") == "BOOLEAN" and value is not None:
        return bool(value)
    said = as_text(score.get("stringValue")) or (as_text(score.get("value")) if value is None else "")
    return said or value


def _list_corrections(trace: Mapping[str, Any], reply: str) -> Iterator[Feedback]:
    """An answer that people wrote in the agent's place says that its own was wrong, unless it is the same."""
    scores = [*as_list(trace.get("corrections")), *as_list(trace.get("scores"))]
    for score in map(as_dict, scores):
        text = as_text(score.get("longStringValue"))
        if score.get("dataType") == "CORRECTION" and text.strip() != reply.strip():
            yield Feedback("correction", value=False, comment=text)


def _count(value: Any) -> int:
    return min(max(int(number(value) or 0), 0), _MOST_TOKENS)
