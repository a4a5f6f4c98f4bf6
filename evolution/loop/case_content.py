"""Stage 1: what a failure case holds of its record: texts for lists, language, and what makes two cases the same.

Reading files is the work of `adapters.formats`, storing that of `loop.cases`.
"""

import hashlib
import json
import re
from dataclasses import asdict
from typing import Any

from evolution.loop.failure_rules import lowest_score
from evolution.models import Harness
from evolution.ports import Record
from harness_repo.runtime.context import normalise_request

# The fields of a case that come from its record; all else is people's, or the loop's.
CONTENT = (
    "request", "context", "trajectory", "reply", "symptom", "scores", "score", "findings", "signals", "category",
    "language", "title", "blamed_turn", "harness_commit", "happened_at", "masked", "fingerprint", "content_digest",
)  # fmt: skip
LONGEST_TITLE = 160
_CHINESE = re.compile("[\u4e00-\u9fff]")
_ENCODE = json.JSONEncoder(sort_keys=True).encode
# What is equal is written alike.
_WRITE = json.JSONEncoder(sort_keys=True, ensure_ascii=False, check_circular=False).encode
_WRITE_OTHERS = json.JSONEncoder(sort_keys=True, default=str).encode
_EMPTY = dict.fromkeys(("request", "context", "trajectory", "scores", "signals"), "{}") | {"findings": "[]"}
# PostgreSQL's integer.
MOST_TURNS = 2**31 - 1


def write_fields(item: Record) -> dict[str, str]:
    """A record's fields that a case keeps as JSON, as JSON."""
    values = {
        "request": item.request,
        "context": item.context,
        "trajectory": item.trajectory,
        "scores": item.scores,
        "findings": item.findings,
        "signals": _signals(item),
    }
    return {name: _WRITE(value) if value else _EMPTY[name] for name, value in values.items()}


def build_content(
    harness: Harness,
    item: Record,
    *,
    language: str = "",
    masked: dict[str, int] | None = None,
    written: dict[str, str] | None = None,
) -> dict[str, Any]:
    """Build the fields of a failure case that depend on the record's content alone; CONTENT names them.

    `written` is what `write_fields` says of it, where the caller has it.
    """
    text = request_text(item.request)
    content = {
        "request": item.request,
        "context": item.context,
        "trajectory": item.trajectory,
        "reply": item.reply,
        "symptom": item.symptom,
        "scores": item.scores,
        "score": lowest_score(item.scores),
        "findings": item.findings,
        "signals": _signals(item),
        "category": item.category[:64],
        "language": language or detect_language(text or item.reply),
        "title": shorten_title(text or item.symptom or item.reply or item.source_id),
        "blamed_turn": item.blamed_turn if item.blamed_turn and item.blamed_turn <= MOST_TURNS else None,
        "harness_commit": item.harness_commit[:40],
        "happened_at": item.happened_at,
        "masked": masked or {},
    }
    digest = _digest_content(content, written or write_fields(item))
    return {**content, "fingerprint": _fingerprint(harness, item), "content_digest": digest}


def _digest_content(content: dict[str, Any], written: dict[str, str]) -> str:
    """SHA-256 of all that comes from a record."""
    others = [content[name] for name in CONTENT if name in content and name not in written]
    text = "\0".join([*written.values(), _WRITE_OTHERS(others)])
    return hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _signals(item: Record) -> dict[str, Any]:
    """What the source says besides scores; only what there is."""
    signals = {
        "errors": list(item.errors),
        "checks": [asdict(check) for check in item.checks],
        "feedback": [asdict(each) for each in item.feedback],
    }
    return {name: entries for name, entries in signals.items() if entries}


def request_text(request: dict[str, Any]) -> str:
    """Return what the users said, the danmaku of one request joined; empty when the request can't be read."""
    try:
        return " / ".join(entry.text for entry in normalise_request(request).danmaku)
    except (TypeError, ValueError):
        return ""


def detect_language(text: str) -> str:
    """Return zh when the text has a Chinese character, else en."""
    return "zh" if _CHINESE.search(text) else "en"


def shorten_title(text: str) -> str:
    """A text as one line of a list."""
    line = " ".join(text.split())
    return line if len(line) <= LONGEST_TITLE else line[: LONGEST_TITLE - 1] + "…"


def hash_json(value: Any) -> str:
    """SHA-256 of a JSON value, whatever the order of its keys."""
    return hashlib.sha256(_ENCODE(value).encode()).hexdigest()


def _fingerprint(harness: Harness, item: Record) -> str:
    """SHA-256 of harness, request, what was said and called, reply and symptom; without ids and system prompt."""
    said = [
        [
            message.get("role"),
            message.get("content"),
            [_call(call) for call in message.get("tool_calls") or []],
        ]
        for message in item.trajectory.get("messages") or []
        if message.get("role") != "system"
    ]
    return hash_json([harness.pk, item.request, said, item.reply, item.symptom])


def _call(call: Any) -> Any:
    return call.get("function", call) if isinstance(call, dict) else call
