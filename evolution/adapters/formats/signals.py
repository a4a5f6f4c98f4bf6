"""What a record of ours says of success: scores, errors, checks, feedback; and tags. Long and short forms."""

from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.values import RecordProblem, expect, number
from evolution.ports import Check, Feedback


def read_scores(item: dict[str, Any]) -> dict[str, Any]:
    """`scores` by name, and a single `score`; numbers in texts are numbers, true and false are 1 and 0."""
    scores = {**expect(item, "scores", dict, {})}
    if item.get("score") is not None:
        scores.setdefault("score", item["score"])
    return {name: _read_score(value) for name, value in scores.items()}


def _read_score(value: Any) -> Any:
    if isinstance(value, bool):
        return int(value)
    found = number(value)
    return value if found is None else found


def read_errors(item: dict[str, Any]) -> tuple[str, ...]:
    """`errors`: texts, or objects with a message."""
    errors = item.get("errors")
    given = [errors] if isinstance(errors, str) else expect(item, "errors", list, [])
    return tuple(text for text in (_error_text(entry) for entry in given) if text)


def _error_text(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    if isinstance(entry, dict) and isinstance(entry.get("message"), str):
        kind = entry.get("type")
        return f"{kind}: {entry['message']}" if isinstance(kind, str) and kind else str(entry["message"])
    raise _wrong("errors", _("texts, or objects with a `message`"))


def read_checks(item: dict[str, Any]) -> tuple[Check, ...]:
    """`checks`: objects with name, passed and reason."""
    return tuple(_read_check(entry) for entry in expect(item, "checks", list, []))


def _read_check(entry: Any) -> Check:
    if not isinstance(entry, dict) or not isinstance(entry.get("passed"), bool):
        raise _wrong("checks", _("objects with `name` and `passed`, which is true or false"))
    return Check(expect(entry, "name", str, ""), entry["passed"], expect(entry, "reason", str, ""))


def read_feedback(item: dict[str, Any]) -> tuple[Feedback, ...]:
    """`feedback`: objects with name, value and comment, or the value alone."""
    given = item.get("feedback")
    entries = [] if given is None else given if isinstance(given, list) else [given]
    return tuple(_read_feedback(entry) for entry in entries)


def _read_feedback(entry: Any) -> Feedback:
    if isinstance(entry, str | int | float):
        return Feedback("", entry)
    if not isinstance(entry, dict):
        raise _wrong("feedback", _("values, or objects with `value` or `comment`"))
    value = expect(entry, "value", (str, int, float, bool), None)
    return Feedback(expect(entry, "name", str, ""), value, expect(entry, "comment", str, ""))


def read_tags(item: dict[str, Any]) -> tuple[str, ...]:
    """`tags`: texts; each is kept once."""
    tags = expect(item, "tags", list, [])
    if not all(isinstance(tag, str | int) and not isinstance(tag, bool) for tag in tags):
        raise _wrong("tags", _("texts"))
    return tuple(dict.fromkeys(text for text in (str(tag).strip() for tag in tags) if text))


def _wrong(name: str, wanted: str) -> RecordProblem:
    return RecordProblem(_("`%(name)s` must be %(wanted)s") % {"name": name, "wanted": wanted})
