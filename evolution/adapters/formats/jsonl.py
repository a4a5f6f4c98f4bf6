"""Our own format: UTF-8, one JSON object per line.

    {"id": "2024-06-01/17",
     "request": {"danmaku": [{"user": "小美", "text": "3号链接多少钱？"}], "history": []},
     "context": {"room": {...}}, "reply": "...", "symptom": "券后价说错了", "category": "price",
     "tags": ["double-11"], "scores": {"accuracy": 0, "effectiveness": 1}, "failed": true}

`request`, or `messages` (OpenAI chat messages), or a `trajectory` (trajectory/1) must be there; everything
else may be missing. `source` (default "jsonl") and `harness_commit` are taken too. Without `failed`, a
record is a failure unless it has scores that all are 1 and no symptom. Without `id`, the record's content
names it.
"""

import hashlib
import json
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.messages import build_trajectory, check_messages, last_reply, split_request
from evolution.adapters.formats.values import RecordProblem, expect
from evolution.ports import Record
from harness_repo.runtime.context import normalise_request

SOURCE = "jsonl"


def is_jsonl(item: dict[str, Any]) -> bool:
    """Say whether a record has the fields of this format."""
    return any(
        isinstance(item.get(name), dict | list | str) for name in ("request", "messages", "trajectory")
    )


def read_item(item: dict[str, Any], name: str, line: int) -> Record:  # noqa: ARG001  ids need no file name
    """Turn one cleaned line into a record; raises RecordProblem."""
    trajectory = _trajectory(item)
    scores = expect(item, "scores", dict, {})
    symptom = expect(item, "symptom", str, "")
    return Record(
        source=expect(item, "source", str, SOURCE)[:64] or SOURCE,
        source_id=_identity(item),
        failed=_has_failed(item, scores, symptom),
        line=line,
        request=_request(item, trajectory),
        context=_context(item),
        trajectory=trajectory,
        reply=expect(item, "reply", str, None) or _reply(trajectory),
        symptom=symptom,
        scores=scores,
        category=expect(item, "category", str, ""),
        harness_commit=expect(item, "harness_commit", str, "")[:40],
    )


def _identity(item: dict[str, Any]) -> str:
    given = expect(item, "id", (str, int), None)
    if given is not None and str(given):
        return str(given)
    content = json.dumps(item, sort_keys=True, ensure_ascii=False)
    return "content/" + hashlib.sha256(content.encode()).hexdigest()[:32]


def _trajectory(item: dict[str, Any]) -> dict[str, Any]:
    given: dict[str, Any] | None = expect(item, "trajectory", dict, None)
    if given is not None:
        return _checked_trajectory(given)
    if item.get("messages") is not None:
        return build_trajectory(check_messages(item["messages"]))
    return {}


def _checked_trajectory(given: dict[str, Any]) -> dict[str, Any]:
    """Keep what was handed over, as long as its lists are lists of objects; messages alone are enough."""
    messages = expect(given, "messages", list, [])
    built = build_trajectory(check_messages(messages)) if messages else {}
    for name in ("tool_calls", "hooks", "calls"):
        if not all(isinstance(entry, dict) for entry in expect(given, name, list, [])):
            raise RecordProblem(_("`%(name)s` must be a list of objects") % {"name": f"trajectory.{name}"})
    return {**built, **given, "messages": built.get("messages", [])}


def _request(item: dict[str, Any], trajectory: dict[str, Any]) -> dict[str, Any]:
    given = expect(item, "request", (dict, str), None)
    if isinstance(given, str):
        given = {"danmaku": [{"user": "user", "text": given}], "history": []}
    if given is None and not trajectory:
        raise RecordProblem(_("neither `request` nor `messages` nor `trajectory` is there"))
    if given is None:
        return split_request(trajectory.get("messages") or [])
    try:
        texts = normalise_request(given).danmaku
    except (TypeError, ValueError) as error:
        raise RecordProblem(_("`request`: %(problem)s") % {"problem": error}) from None
    if not texts and not trajectory:
        raise RecordProblem(_("`request` has no danmaku with a text"))
    return dict(given)


def _context(item: dict[str, Any]) -> dict[str, Any]:
    context = dict(expect(item, "context", dict, {}))
    tags = expect(item, "tags", list, [])
    return {**context, "tags": tags} if tags else context


def _reply(trajectory: dict[str, Any]) -> str:
    reply = trajectory.get("reply")
    return reply if isinstance(reply, str) else last_reply(trajectory.get("messages") or [])


def _has_failed(item: dict[str, Any], scores: dict[str, Any], symptom: str) -> bool:
    given = expect(item, "failed", bool, None)
    if given is not None:
        return bool(given)
    numbers = [value for value in scores.values() if isinstance(value, int | float)]
    return bool(symptom) or not numbers or min(numbers) < 1
