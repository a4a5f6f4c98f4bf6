"""Our own format: UTF-8, one JSON object per line. A record is a line, or an element of a list.

    {"id": "2024-06-01/17", "happened_at": "2024-06-01T20:03:11+08:00", "session": "live-8",
     "request": {"danmaku": [{"user": "小美", "text": "3号链接多少钱？"}], "history": []},
     "context": {"room": {"current_link": 1}}, "reply": "3号链接现在59元哈。",
     "symptom": "券后价说错了", "category": "price", "tags": ["double-11"], "failed": true,
     "scores": {"accuracy": 0, "effectiveness": 1}, "errors": ["coupon service: timeout"],
     "checks": [{"name": "price", "passed": false, "reason": "89 expected"}],
     "feedback": [{"name": "viewer", "value": "down", "comment": "价格不对"}],
     "blamed_turn": 1, "source": "live-commerce", "harness_commit": "0123456789abcdef0123456789abcdef01234567"}

`request` (an object, or a text), or `messages` (OpenAI chat messages), or a `trajectory` (trajectory/1) must be there;
everything else may be missing. What each field may be, evolution/adapters/formats/case.schema.json says. Whether a
record is a failure is for the rule of the import to say; `failed` is the source's own word, and a symptom says that it
has. Without `id`, the record's content names it. Of a key that stands twice in an object, the last one counts.

A mapping says where fields are that are called otherwise, {"our field": "theirs"}: {"reply": "answer", "request":
"trace.input.0.text", "scores.accuracy": "/eval/acc"}. Theirs is a column, a key, a dotted path or a JSON pointer.
"""

import hashlib
import json
from typing import Any

from django.utils.translation import gettext as _

from evolution.adapters.formats.items import Where, each
from evolution.adapters.formats.mapping import map_fields
from evolution.adapters.formats.messages import build_trajectory, check_messages, last_reply, split_request
from evolution.adapters.formats.shapes import read_time
from evolution.adapters.formats.signals import read_checks, read_errors, read_feedback, read_scores, read_tags
from evolution.adapters.formats.values import RecordProblem, expect
from evolution.ports import Record
from harness_repo.runtime.context import normalise_request

NAME = SOURCE = "jsonl"
# Fields that no other format has beside `messages`.
OWN = frozenset(
    {
        "request", "trajectory", "context", "reply", "symptom", "failed", "scores", "errors", "checks", "feedback",
        "findings", "blamed_turn", "happened_at", "session", "harness_commit",
    }
)  # fmt: skip


def fits(value: Any) -> bool:
    """Say whether a JSON value has the fields of this format."""
    names = ("request", "messages", "trajectory")
    return isinstance(value, dict) and any(isinstance(value.get(name), dict | list | str) for name in names)


def read_item(item: dict[str, Any], where: Where, line: int) -> Record:
    """Turn one cleaned line into a record; raises RecordProblem."""
    if where.mapping:
        item = map_fields(item, where.mapping)
    trajectory = _trajectory(item)
    symptom = expect(item, "symptom", str, "")
    source, source_id = name_item(item)
    return Record(
        source=source,
        source_id=source_id,
        failed=expect(item, "failed", bool, True if symptom else None),
        line=line,
        request=_request(item, trajectory),
        context=_context(item),
        trajectory=trajectory,
        reply=expect(item, "reply", str, None) or _reply(trajectory),
        symptom=symptom,
        scores=read_scores(item),
        findings=_findings(item),
        category=expect(item, "category", str, ""),
        harness_commit=expect(item, "harness_commit", str, "")[:40],
        errors=read_errors(item),
        checks=read_checks(item),
        feedback=read_feedback(item),
        has_status=item.get("errors") is not None,
        blamed_turn=_blamed_turn(item),
        happened_at=_happened_at(item),
        tags=read_tags(item),
    )


def name_item(item: dict[str, Any]) -> tuple[str, str]:
    """Source and id of a cleaned line; raises RecordProblem."""
    return expect(item, "source", str, SOURCE)[:64] or SOURCE, name_by_content(item)


def name_by_content(item: dict[str, Any]) -> str:
    """The record's own id, or one that the same content always gets."""
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
        return build_trajectory(check_messages(item["messages"]), is_clean=True)
    return {}


def _checked_trajectory(given: dict[str, Any]) -> dict[str, Any]:
    """Keep what was handed over, as long as its lists are lists of objects; messages alone are enough."""
    messages = expect(given, "messages", list, [])
    built = build_trajectory(check_messages(messages), is_clean=True) if messages else {}
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
    session = expect(item, "session", (str, int), None)
    tools = expect(item, "tools", list, None)
    # As formats do that know them: what the model was offered is part of what it was asked.
    return {
        **({"tools": tools} if tools else {}),
        **context,
        **({} if session is None else {"session": str(session)}),
    }


def _findings(item: dict[str, Any]) -> list[dict[str, Any]]:
    findings: list[Any] = expect(item, "findings", list, [])
    if not all(isinstance(finding, dict) for finding in findings):
        raise RecordProblem(_("`%(name)s` must be a list of objects") % {"name": "findings"})
    return findings


def _blamed_turn(item: dict[str, Any]) -> int | None:
    turn: int | None = expect(item, "blamed_turn", int, None)
    if turn is not None and not 0 < turn < 2**31:
        raise RecordProblem(_("`%(name)s` counts from 1") % {"name": "blamed_turn"})
    return turn


def _happened_at(item: dict[str, Any]) -> Any:
    given = expect(item, "happened_at", (str, int, float), None)
    moment = None if given is None else read_time(given)
    if given not in {None, ""} and moment is None:
        raise RecordProblem(_("`%(name)s` is no time: %(value)s") % {"name": "happened_at", "value": given})
    return moment


def _reply(trajectory: dict[str, Any]) -> str:
    reply = trajectory.get("reply")
    return reply if isinstance(reply, str) else last_reply(trajectory.get("messages") or [])


read = each(read_item, name_item)
