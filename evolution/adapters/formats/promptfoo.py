"""Results of promptfoo; a record is a row, a test with one prompt and one provider.

`success` says whether it failed; assertions are checks. A row that promptfoo calls an error has an error and no score.
See `results.promptfoo`.
"""

from collections import Counter
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.items import Item, Where, attempt
from evolution.adapters.formats.measured import build_record, number_records, open_document
from evolution.adapters.formats.shapes import as_dict, as_list, as_text, read_time
from evolution.adapters.formats.values import RecordProblem, clean, escape, number
from evolution.adapters.results import promptfoo
from evolution.ports import Check, Record, Rejected

NAME = SOURCE = promptfoo.FORMAT


def fits(value: Any) -> bool:
    """Say whether a JSON value is such a file, or one of its rows, which promptfoo writes as .jsonl."""
    return promptfoo.fits(value) or _is_row(value)


def _is_row(value: Any) -> bool:
    return isinstance(value, dict) and "success" in value and ("promptIdx" in value or "testCase" in value)


def read(items: Iterator[Item], where: Where) -> Iterator[Record | Rejected]:
    """Read the rows of a file."""
    names: Counter[str] = Counter()
    for item in items:
        try:
            document = open_document(item)
        except RecordProblem as problem:
            yield Rejected(item.line, str(problem), item.number)
            continue
        rows = [document] if _is_row(document) else promptfoo.find_rows(document)
        made = as_text(document.get("evalId")) or where.stem
        for place, row in number_records(rows):
            read_it = partial(_read_row, row, made, names, item.line)
            yield attempt(read_it, item.line, place if len(rows) > 1 else item.number)


def _read_row(row: dict[str, Any], made: str, names: Counter[str], line: int) -> Record:
    if "success" not in row:
        raise RecordProblem(_("`%(name)s` is missing") % {"name": "success"})
    cleaned = _drop_nan(row)
    variant = promptfoo.name_variant(cleaned)
    identity = _identify(cleaned, made, variant)
    names[identity] += 1
    case = promptfoo.read_case(identity, cleaned)
    result = promptfoo.read_row(cleaned, identity, 0)
    success = cleaned.get("success")
    return build_record(
        result,
        source=SOURCE,
        source_id=identity if names[identity] == 1 else f"{identity}/{names[identity]}",
        line=line,
        scores=dict(_list_scores(cleaned)),
        context={
            **case.context,
            "provider": variant.rpartition(" | ")[0],
            "prompt": variant.rpartition(" | ")[2],
        },
        request=case.request,
        failed=not success if isinstance(success, bool) and not result.error_kind else None,
        checks=_list_checks(as_dict(cleaned.get("gradingResult"))),
        category=case.category if case.category != "test" else "",
        happened_at=read_time(cleaned.get("createdAt")),
    )


def _drop_nan(row: dict[str, Any]) -> dict[str, Any]:
    """The row, its texts fit to be stored; a NaN among the values that matter is said by the result's error."""
    try:
        cleaned: dict[str, Any] = clean(row)
    except RecordProblem:
        return row
    return cleaned


def _identify(row: Mapping[str, Any], made: str, variant: str) -> str:
    if given := as_text(row.get("id")):
        return given
    test = as_text(row.get("testIdx")) or as_text(as_dict(row.get("testCase")).get("description"))
    return escape(f"{made}/{test}/{variant}")


def _list_scores(row: Mapping[str, Any]) -> Iterator[tuple[str, float]]:
    named = {"score": row.get("score"), **as_dict(row.get("namedScores"))}
    for name, value in named.items():
        found = number(value)
        if found is not None:
            yield name, found


def _list_checks(grading: Mapping[str, Any]) -> Iterator[Check]:
    parts: list[Mapping[str, Any]] = [
        part for part in as_list(grading.get("componentResults")) if isinstance(part, dict)
    ]
    for part in parts or ([grading] if "pass" in grading else []):
        assertion = as_dict(part.get("assertion"))
        name = as_text(assertion.get("metric")) or as_text(assertion.get("type")) or "assert"
        yield Check(escape(name), part.get("pass") is True, escape(as_text(part.get("reason"))))
