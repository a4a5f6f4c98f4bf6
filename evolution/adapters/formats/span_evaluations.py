"""What judges and people said of a trace, in the trace itself: scores, checks and feedback.

OpenTelemetry has an event gen_ai.evaluation.result, OpenInference `evaluations` and `annotations` of a span, its trace
or session.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from evolution.adapters.formats.shapes import as_dict, as_text
from evolution.adapters.formats.span_attributes import find, find_text, list_entries
from evolution.adapters.formats.span_tree import Span, Tree
from evolution.adapters.formats.values import number
from evolution.ports import Check, Feedback

_LISTS = tuple(
    f"{scope}{name}" for scope in ("", "trace.", "session.") for name in ("evaluations", "annotations")
)
_EVENT = "gen_ai.evaluation."
# Labels that say of a check how it ended.
_VERDICTS = {
    "pass": True, "passed": True, "correct": True, "true": True, "yes": True, "success": True,
    "fail": False, "failed": False, "incorrect": False, "false": False, "no": False, "failure": False,
}  # fmt: skip


@dataclass(frozen=True)
class _Result:
    name: str
    score: float | int | None
    label: str
    explanation: str
    is_by_person: bool = False


@dataclass
class Evaluations:
    """All that was said of a trace."""

    scores: dict[str, Any] = field(default_factory=dict)
    checks: list[Check] = field(default_factory=list)
    feedback: list[Feedback] = field(default_factory=list)


def read_evaluations(tree: Tree) -> Evaluations:
    """Scores by name, the last one counting; labels that pass or fail as checks; what people said as feedback."""
    found = Evaluations()
    for result in dict.fromkeys(result for span in tree.spans for result in _list_results(span)):
        _take(found, result)
    return found


def _take(found: Evaluations, result: _Result) -> None:
    passed = _VERDICTS.get(result.label.lower())
    if result.is_by_person:
        value = result.score if result.score is not None else result.label or None
        found.feedback.append(Feedback(result.name, value, result.explanation))
        return
    if result.score is not None:
        found.scores[result.name] = result.score
    if passed is not None:
        found.checks.append(Check(result.name, passed, result.explanation))
    elif result.score is None or result.explanation:
        # The score has been taken; what the judge said of it is no second one.
        label = result.label if result.score is None and result.label else None
        found.feedback.append(Feedback(result.name, label, result.explanation or result.label))


def _list_results(span: Span) -> Iterator[_Result]:
    for event in span.events:
        if event.name.startswith(_EVENT):
            yield _read_event(event.name, event.attributes)
    if find(span.attributes, f"{_EVENT}name") is not None:
        yield _read_event(f"{_EVENT}result", span.attributes)
    for name in _LISTS:
        for entry in list_entries(span.attributes, name):
            fields = as_dict(as_dict(entry).get(name.rpartition(".")[2].removesuffix("s")))
            if fields:
                yield _read_entry(fields)


def _read_event(event: str, attributes: dict[str, Any]) -> _Result:
    score = find(attributes, f"{_EVENT}score.value", f"{_EVENT}score")
    return _Result(
        find_text(attributes, f"{_EVENT}name") or event.removeprefix(_EVENT),
        number(score),
        find_text(attributes, f"{_EVENT}score.label", f"{_EVENT}label"),
        find_text(attributes, f"{_EVENT}explanation", f"{_EVENT}reasoning"),
    )


def _read_entry(fields: dict[str, Any]) -> _Result:
    return _Result(
        as_text(fields.get("name")) or "evaluation",
        number(fields.get("score")),
        as_text(fields.get("label")),
        as_text(fields.get("explanation")),
        as_text(fields.get("annotator_kind")).upper() == "HUMAN",
    )
