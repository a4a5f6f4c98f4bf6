"""Inside an evaluation: what a judge is shown of a case and its answer, and its verdict read. No model is asked."""

import json
from collections.abc import Mapping
from typing import Any

from evolution.loop.outcomes import shown_reply
from evolution.models import DatasetCase
from harness_repo.format.harness import Harness as HarnessState
from harness_repo.format.json_schema import SchemaUnusable, find_violation
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.storable import make_storable
from harness_repo.runtime.trajectory import Trajectory, to_fields

# Characters of a text, and of a list of them, that a judge is shown.
LONGEST_FOR_JUDGE = 20_000
MOST_FOR_JUDGE = 200_000
MOST_ENTRIES_FOR_JUDGE = 500

# What every judge's reply has to have, whatever else its harness asks for.
SCORES_SCHEMA = {
    "type": "object",
    "required": ["accuracy", "effectiveness"],
    "properties": {
        "accuracy": {"enum": [0, 1]},
        "effectiveness": {"enum": [0, 0.5, 1]},
        "reasons": {"type": "object"},
        "findings": {"type": "array", "items": {"type": "object"}},
    },
}


class VerdictReader:
    """Reads the verdicts of one judge's run as it gives them; the last one that could be read is kept."""

    def __init__(self, judge: HarnessState) -> None:
        self._judge = judge
        self._read: tuple[str, dict[str, Any]] | None = None

    def check(self, reply: str) -> str | None:
        """What is wrong with a reply, None when there are scores in it."""
        try:
            self._read = reply, read_scores(reply, self._judge)
        except ValueError as failure:
            return str(failure)
        return None

    def scores(self, reply: str) -> dict[str, Any]:
        """As read_scores, which is not asked again for what was checked."""
        if self._read is not None and self._read[0] == reply:
            return self._read[1]
        return read_scores(reply, self._judge)


def judge_variables(case: DatasetCase, answered: Trajectory) -> dict[str, Any]:
    """What the sections of a judge's prompt see."""
    # An agent that says more than a judge can read has a score and no error of the judge's.
    return {
        "case": {"request": case.request, "context": case.context, "category": case.category},
        "reply": cut_text(shown_reply(answered)),
        "conversation": cut_json([to_fields(turn) for turn in answered.conversation]),
        "evidence": cut_json(answered.evidence()),
        "expected": case.expected,
    }


def cut_text(text: str, most: int = LONGEST_FOR_JUDGE) -> str:
    """A text as the judge is shown it: one that is too long ends with a word about that."""
    return text if len(text) <= most else f"{text[:most]}… [cut: {len(text)} characters]"


def cut_json(entries: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The same for a list: long texts in it are cut, and entries that there is no more room for say so."""
    left, shown = MOST_FOR_JUDGE, []
    for entry in entries:
        cut: Any = _cut_inside(entry, LONGEST_FOR_JUDGE)
        size = len(json.dumps(cut, ensure_ascii=False, default=str))
        left -= size
        shown.append(cut if left >= 0 else {**_names_of(entry), "cut": f"{size} characters"})
        if len(shown) == MOST_ENTRIES_FOR_JUDGE:
            break
    return shown


def _cut_inside(value: object, most: int) -> object:
    if isinstance(value, str):
        return cut_text(value, most)
    if isinstance(value, dict):
        return {key: _cut_inside(inner, most) for key, inner in value.items()}
    return [_cut_inside(inner, most) for inner in value] if isinstance(value, list) else value


def _names_of(entry: Mapping[str, Any]) -> dict[str, Any]:
    return {name: cut_text(str(entry[name]), 200) for name in ("tool", "error") if name in entry}


def read_scores(reply: str, judge: HarnessState) -> dict[str, Any]:
    """The scores, reasons and findings of a judge's reply; ValueError when it breaks its schema.

    One that gives a key twice contradicts itself, and is refused.
    """
    scores: Any = read_json(reply, has_unique_keys=True)
    for schema in filter(None, (judge.reply_schema, SCORES_SCHEMA)):
        try:
            wrong = find_violation(schema, scores)
        except SchemaUnusable as failure:
            raise ValueError(str(failure)) from failure
        if wrong:
            raise ValueError(wrong)
    return {
        "accuracy": float(scores["accuracy"]),
        "effectiveness": float(scores["effectiveness"]),
        "reasons": make_storable(scores.get("reasons", {})),
        "findings": make_storable(scores.get("findings", [])),
    }
