"""Trace exports of Langfuse; a record is a trace.

Read are {trace, observations}, answers of the API ({data: […]}), traces with or without their observations, and
observations alone, in a list or one on a line, with names in camel or in snake case. A trace that comes with its
observations, or with an input or output, is read at once; observations that stand by themselves are kept until the
file is read, as those of a trace may be anywhere in it. Scores that people gave (ANNOTATION) and categories are
feedback, all other numbers are scores. https://langfuse.com/docs/api-and-data-platform/features/public-api
"""

import re
from collections.abc import Iterator
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.items import Item, Where, attempt, take_object
from evolution.adapters.formats.langfuse_trace import read_trace
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, kind_of
from evolution.adapters.formats.values import RecordProblem
from evolution.ports import Record, Rejected

NAME = "langfuse"
_TYPES = frozenset(
    {
        "SPAN", "GENERATION", "EVENT", "AGENT", "TOOL", "CHAIN", "RETRIEVER", "EVALUATOR", "EMBEDDING", "GUARDRAIL",
    }
)  # fmt: skip
# Fields that together only a trace of Langfuse has.
_TRACE_FIELDS = (
    {"projectId", "timestamp"},
    {"htmlPath"},
    {"bookmarked", "public"},
    {"sessionId", "observations"},
)
_CAPITAL = re.compile(r"_([a-z])")


def fits(value: Any) -> bool:
    """Say whether a JSON value is an export of this kind, or a part of one."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("trace"), dict) and "observations" in value:
        return True
    if isinstance(value.get("data"), list):
        return any(fits(entry) for entry in value["data"][:1])
    renamed = _rename(value)
    return _is_observation(renamed) or _is_trace(renamed)


def read(items: Iterator[Item], where: Where) -> Iterator[Record | Rejected]:  # noqa: ARG001  ids need no file name
    """Read the traces of a file."""
    loose = _Loose()
    for item in items:
        try:
            entries = list(_open(take_object(item)))
        except RecordProblem as problem:
            yield Rejected(item.line, str(problem), item.number)
            continue
        for entry in entries:
            yield from _read_entry(entry, item, loose)
    yield from loose.read()


def _open(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The traces and observations that one JSON value holds."""
    if isinstance(value.get("data"), list):
        yield from (_rename(as_dict(entry)) for entry in value["data"])
    elif isinstance(value.get("trace"), dict):
        observations = [*as_list(value.get("observations")), *as_list(value["trace"].get("observations"))]
        scores = [*as_list(value["trace"].get("scores")), *as_list(value.get("scores"))]
        yield _rename({**value["trace"], "observations": observations, "scores": scores})
    else:
        yield _rename(value)


def _read_entry(entry: dict[str, Any], item: Item, loose: "_Loose") -> Iterator[Record | Rejected]:
    if _is_observation(entry):
        loose.add(entry, item)
    elif not as_text(entry.get("id")):
        yield Rejected(item.line, _("neither a trace nor an observation of Langfuse"), item.number)
    elif not _is_whole(entry):
        loose.add_trace(entry, item)
    else:
        yield _read_one(entry, item)


def _read_one(trace: dict[str, Any], item: Item) -> Record | Rejected:
    observations = [_rename(as_dict(entry)) for entry in as_list(trace.get("observations"))]
    known = [entry for entry in observations if as_text(entry.get("id"))]
    return attempt(lambda: read_trace(trace, known, item.line), item.line, item.number)


class _Loose:
    """Traces and observations that come apart."""

    def __init__(self) -> None:
        self._traces: dict[str, dict[str, Any]] = {}
        self._observations: dict[str, list[dict[str, Any]]] = {}
        # of the first piece of each trace
        self._items: dict[str, Item] = {}

    def add(self, observation: dict[str, Any], item: Item) -> None:
        identity = as_text(observation["traceId"])
        self._observations.setdefault(identity, []).append(observation)
        self._items.setdefault(identity, item._replace(value=None))

    def add_trace(self, trace: dict[str, Any], item: Item) -> None:
        identity = as_text(trace["id"])
        self._traces[identity] = trace
        self._items.setdefault(identity, item._replace(value=None))

    def read(self) -> Iterator[Record | Rejected]:
        for identity, item in self._items.items():
            trace = self._traces.get(identity, {"id": identity})
            yield _read_one({**trace, "observations": self._observations.get(identity, [])}, item)


def _rename(value: dict[str, Any]) -> dict[str, Any]:
    """Names in snake case, as in exports to a bucket, as those of the API."""
    return {_CAPITAL.sub(lambda match: match[1].upper(), name): entry for name, entry in value.items()}


def _is_observation(value: dict[str, Any]) -> bool:
    return kind_of(value) in _TYPES and "traceId" in value and "startTime" in value


def _is_trace(value: dict[str, Any]) -> bool:
    return "id" in value and any(names <= value.keys() for names in _TRACE_FIELDS) and "traceId" not in value


def _is_whole(trace: dict[str, Any]) -> bool:
    """Say whether a trace says what was said in it: in the API's lists its observations are ids alone."""
    has_observations = any(isinstance(entry, dict) for entry in as_list(trace.get("observations")))
    return has_observations or trace.get("input") is not None or trace.get("output") is not None
