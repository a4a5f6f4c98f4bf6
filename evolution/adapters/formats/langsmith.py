"""Runs of LangSmith; a record is a trace, the run at the root with all under it.

Read are batches as the SDK sends them ({"post": […], "patch": […]}: creates and updates of a run come together by
its id), runs in a list or one on a line, and runs with `child_runs`. As the pieces of a trace may stand anywhere in a
file, all of them are read first. https://docs.langchain.com/langsmith/run-data-format
"""

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, Literal

from django.utils.translation import gettext as _

from evolution.adapters.formats.chats import read_tools
from evolution.adapters.formats.items import Item, Where, attempt, take_object
from evolution.adapters.formats.logged_runs import Run, Step, assemble, find_commit
from evolution.adapters.formats.messages import conversation
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, read_time
from evolution.adapters.formats.values import RecordProblem, number
from evolution.ports import Feedback, Record, Rejected

NAME = SOURCE = "langsmith"
_KINDS: Mapping[str, Literal["llm", "tool"]] = {"llm": "llm", "tool": "tool"}
_MOST_TOKENS = 2**31 - 1
# A program that logs nothing but one value names it so.
_SOLE = frozenset(
    {"input", "output", "question", "query", "answer", "text", "prompt", "completion", "result"}
)


def fits(value: Any) -> bool:
    """Say whether a JSON value is a run, or a batch of them."""
    if not isinstance(value, dict):
        return False
    batches = [value[name] for name in ("post", "patch") if isinstance(value.get(name), list)]
    if batches:
        return all(_is_run(run) for batch in batches for run in batch[:1])
    return _is_run(value) and "run_type" in value


def _is_run(value: Any) -> bool:
    return (
        isinstance(value, dict)
        and "id" in value
        and any(name in value for name in ("run_type", "dotted_order", "trace_id", "parent_run_id"))
    )


def read(items: Iterator[Item], where: Where) -> Iterator[Record | Rejected]:  # noqa: ARG001  ids need no file name
    """Read the traces of a file."""
    runs = _Runs()
    for item in items:
        try:
            for run in _open(take_object(item)):
                runs.add(run, item)
        except RecordProblem as problem:
            yield Rejected(item.line, str(problem), item.number)
    yield from runs.read()


def _open(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The runs of one JSON value, children after their parents."""
    batches = [value[name] for name in ("post", "patch") if isinstance(value.get(name), list)]
    runs = [run for batch in batches for run in batch] if batches else [value]
    for run in runs:
        if not isinstance(run, dict) or not as_text(run.get("id")):
            raise RecordProblem(_("a run without an id"))
        yield run
        for child in as_list(run.get("child_runs")):
            yield from _open(as_dict(child))


class _Runs:
    """The runs of a file by id, each put together from its create and its updates."""

    def __init__(self) -> None:
        self._runs: dict[str, dict[str, Any]] = {}
        self._items: dict[str, Item] = {}

    def add(self, run: dict[str, Any], item: Item) -> None:
        identity = as_text(run["id"])
        known = self._runs.get(identity, {})
        # What an update does not say is as it was.
        said = {name: value for name, value in run.items() if value not in (None, "", {}, [])}
        extra = _merge(as_dict(known.get("extra")), as_dict(run.get("extra")))
        self._runs[identity] = {**known, **said, "extra": extra}
        self._items.setdefault(identity, item._replace(value=None))

    def read(self) -> Iterator[Record | Rejected]:
        traces: dict[str, list[dict[str, Any]]] = {}
        for run in self._runs.values():
            traces.setdefault(self._find_root(run), []).append(run)
        for identity, runs in traces.items():
            item = self._items[as_text(runs[0]["id"])]
            yield attempt(partial(_read_trace, identity, runs, item.line), item.line, item.number)

    def _find_root(self, run: dict[str, Any]) -> str:
        """The id of the trace: as the run says, else that of the run above all others."""
        seen: set[str] = set()
        while not as_text(run.get("trace_id")):
            seen.add(as_text(run["id"]))
            parent = self._runs.get(as_text(run.get("parent_run_id")))
            if parent is None or as_text(parent["id"]) in seen:
                return as_text(run.get("parent_run_id")) or as_text(run["id"])
            run = parent
        return as_text(run["trace_id"])


def _merge(known: dict[str, Any], said: dict[str, Any]) -> dict[str, Any]:
    both = {**known, **said}
    for name in known.keys() & said.keys():
        if isinstance(known[name], dict) and isinstance(said[name], dict):
            both[name] = {**known[name], **said[name]}
    return both


def _read_trace(identity: str, runs: list[dict[str, Any]], line: int) -> Record:
    root = next((run for run in runs if as_text(run["id"]) == identity), runs[0])
    run = assemble(map(_read_run, runs), _unwrap(root.get("inputs")), _unwrap(root.get("outputs")))
    if not run.messages and not run.errors:
        raise RecordProblem(_("the run has neither inputs nor outputs"))
    said = conversation(run.messages, calls=run.calls)
    metadata = as_dict(as_dict(root.get("extra")).get("metadata"))
    feedback = tuple(_list_feedback(root))
    return Record(
        source=SOURCE,
        source_id=identity,
        failed=None,
        line=line,
        request=said.request,
        context=_read_context(root, metadata, run),
        trajectory=said.trajectory,
        reply=said.reply,
        errors=run.errors,
        feedback=feedback,
        # A run that has not ended says nothing of how it went.
        has_status=bool(
            root.get("end_time") or root.get("status") in {"success", "error"} or root.get("error")
        ),
        happened_at=read_time(root.get("start_time")),
        harness_commit=find_commit(metadata, as_dict(as_dict(root.get("extra")).get("runtime"))),
        tags=tuple(as_text(tag)[:64] for tag in as_list(root.get("tags")) if as_text(tag)),
    )


def _read_run(run: dict[str, Any]) -> Step:
    outputs = as_dict(run.get("outputs"))
    extra = as_dict(run.get("extra"))
    sent, received, cached = _read_tokens(run, outputs)
    error = run.get("error")
    return Step(
        id=as_text(run["id"]),
        parent_id=as_text(run.get("parent_run_id")),
        kind=_KINDS.get(as_text(run.get("run_type")), "other"),
        name=as_text(run.get("name")),
        start=read_time(run.get("start_time")),
        end=read_time(run.get("end_time")),
        input=_unwrap(run.get("inputs")),
        output=_unwrap(run.get("outputs")),
        error=as_text(error).strip() or ("error" if error or run.get("status") == "error" else ""),
        model=as_text(outputs.get("model")) or as_text(as_dict(extra.get("metadata")).get("ls_model_name")),
        prompt_tokens=sent,
        completion_tokens=received,
        cached_tokens=cached,
        tools=read_tools(
            as_list(as_dict(run.get("inputs")).get("tools"))
            or as_list(as_dict(extra.get("invocation_params")).get("tools"))
        ),
    )


def _unwrap(values: Any) -> Any:
    """Inputs and outputs are objects; of one with a single value of an unspecific name that value is meant."""
    if isinstance(values, dict) and len(values) == 1 and values.keys() <= _SOLE:
        return next(iter(values.values()))
    return values


def _read_tokens(run: Mapping[str, Any], outputs: Mapping[str, Any]) -> tuple[int, int, int]:
    """Tokens sent, received, and cached of those sent, from whichever place has them."""
    usage = as_dict(outputs.get("usage_metadata")) or as_dict(outputs.get("usage"))
    details = as_dict(usage.get("input_token_details"))
    completion = as_dict(usage.get("prompt_tokens_details"))
    return (
        _count(usage.get("input_tokens"), usage.get("prompt_tokens"), run.get("prompt_tokens")),
        _count(usage.get("output_tokens"), usage.get("completion_tokens"), run.get("completion_tokens")),
        _count(details.get("cache_read"), completion.get("cached_tokens")),
    )


def _count(*values: Any) -> int:
    found = next((value for value in map(number, values) if value is not None), 0)
    return min(max(int(found), 0), _MOST_TOKENS)


def _read_context(root: Mapping[str, Any], metadata: Mapping[str, Any], run: Run) -> dict[str, Any]:
    sessions = (metadata.get(name) for name in ("thread_id", "session_id", "conversation_id"))
    named = {
        "run": as_text(root.get("name")),
        "project": as_text(root.get("session_name")),
        "session": next(filter(None, map(as_text, sessions)), ""),
        "user": as_text(metadata.get("user_id")),
        "revision": as_text(metadata.get("revision_id")),
        "model": run.model,
        "tools": run.tools,
    }
    return {name: value for name, value in named.items() if value}


def _list_feedback(root: Mapping[str, Any]) -> Iterator[Feedback]:
    """Feedback as it was given, or else the average of each key."""
    given = [entry for entry in as_list(root.get("feedback")) if isinstance(entry, dict)]
    for entry in given:
        value = entry.get("score") if entry.get("score") is not None else entry.get("value")
        yield Feedback(as_text(entry.get("key")), _read_value(value), as_text(entry.get("comment")))
    for name, stats in as_dict(root.get("feedback_stats")).items() if not given else ():
        comments = ", ".join(filter(None, map(as_text, as_list(as_dict(stats).get("comments")))))
        yield Feedback(name, _read_value(as_dict(stats).get("avg")), comments)


def _read_value(value: Any) -> float | str | bool | None:
    if isinstance(value, bool):
        return value
    found = number(value)
    return found if found is not None else as_text(value) or None
