"""Results that evaluation tools made, as records: what `adapters.results` reads of them, seen as failures to import."""

from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.items import Item
from evolution.adapters.formats.messages import split_request
from evolution.adapters.formats.values import RecordProblem, escape, with_nan
from evolution.ports import Check, MeasuredResult, Record

LONGEST_ERROR = 2000


def open_document(item: Item) -> dict[str, Any]:
    """The document that an item is; NaN in it is read as what it is. Raises RecordProblem for what is no document."""
    if isinstance(item.value, RecordProblem):
        raise item.value
    if not isinstance(item.value, dict):
        raise RecordProblem(_("a record must be an object"))
    document: dict[str, Any] = item.value if item.is_clean else with_nan(item.value)
    return document


def number_records(records: Iterable[Any]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The records of a document that are objects, by their place in it; 1-based."""
    for number, record in enumerate(records, 1):
        yield number, record if isinstance(record, dict) else {}


def build_record(
    result: MeasuredResult,
    *,
    source: str,
    source_id: str,
    line: int,
    scores: Mapping[str, float],
    context: Mapping[str, Any],
    request: Mapping[str, Any] | None = None,
    failed: bool | None = None,
    checks: Iterable[Check] = (),
    findings: Iterable[dict[str, Any]] = (),
    category: str = "",
    harness_commit: str = "",
    happened_at: datetime | None = None,
) -> Record:
    """The record of a result. An error of the agent is one; a judge that failed leaves a record without a score.

    That a result has no error says nothing of how good it was, and so is no status.
    """
    is_judges = result.error_kind.startswith("judge")
    is_error = bool(result.error_kind) and not is_judges
    asked = split_request(result.trajectory.get("messages") or [])
    why = [{"kind": result.error_kind, "text": escape(result.error[:LONGEST_ERROR])}] if is_judges else []
    return Record(
        source=source,
        source_id=escape(source_id),
        failed=failed,
        line=line,
        request=asked if asked["danmaku"] else dict(request or asked),
        context={name: value for name, value in context.items() if value not in ("", None, [], {})},
        trajectory=result.trajectory,
        reply=escape(result.reply),
        scores={} if is_error else dict(scores),
        findings=[*findings, *why],
        category=escape(category),
        harness_commit=harness_commit,
        errors=(escape(result.error[:LONGEST_ERROR] or result.error_kind),) if is_error else (),
        checks=() if is_error else tuple(checks),
        happened_at=happened_at,
    )
