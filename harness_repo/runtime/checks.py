"""The checks of hooks: data in, "passes" or what is wrong out. Nothing of a rule is executed."""

import json
import unicodedata
from collections.abc import Callable, Iterator, Mapping
from decimal import Decimal
from typing import Any

import regex

from harness_repo.cel import CelError, evaluate_cel
from harness_repo.harness import Harness
from harness_repo.json_schema import SchemaUnusable, find_violation
from harness_repo.patterns import PatternError, search
from harness_repo.runtime.json_text import read_json

_NUMBER = regex.compile(r"\d+(?:,\d{3})+(?:\.\d+)?|\d+(?:\.\d+)?")

Payload = Mapping[str, Any]


class CheckError(Exception):
    """A check that could not be made: an expression that fails, a regex that takes too long."""


def run_check(check: Mapping[str, Any], event: str, payload: Payload, harness: Harness) -> str | None:
    """None when the check passes, else what is wrong, in English. Raises CheckError."""
    if "cel" in check:
        return None if holds(check["cel"], payload) else "the condition does not hold"
    try:
        return _CHECKS[check["kind"]](check, subject(event, payload), payload, harness)
    except (PatternError, SchemaUnusable) as failure:
        raise CheckError(str(failure)) from failure


def holds(expression: str, payload: Payload) -> bool:
    """Whether a CEL expression is true of the payload. Raises CheckError."""
    try:
        return evaluate_cel(expression, payload)
    except CelError as failure:
        raise CheckError(str(failure)) from failure


def subject(event: str, payload: Payload) -> str:
    """The text that a check looks at: the danmaku, the call's arguments, its result, or the reply."""
    if event == "input":
        return "\n".join(str(item.get("text", "")) for item in payload.get("danmaku", ()))
    if event == "tool_call":
        return _json(payload.get("tool", {}).get("arguments"))
    if event == "tool_result":
        return _json(payload.get("result"))
    return str(payload.get("reply") or "")


def numbers_in(text: str) -> set[Decimal]:
    """All numbers written in digits: 1,299 and 1299.0 and full-width digits are the same number."""
    plain = unicodedata.normalize("NFKC", text)
    return {Decimal(found.replace(",", "")) for found in _NUMBER.findall(plain)}


def _requires_skill(check: Mapping[str, Any], _: str, payload: Payload, harness: Harness) -> str | None:
    loaded = [harness.skills[name] for name in payload.get("skills_loaded", ()) if name in harness.skills]
    names, kind = check.get("skills"), check.get("skill_kind")
    fitting = [skill for skill in loaded if (not names or skill.name in names) and kind in (None, skill.kind)]
    return None if fitting else "no such skill is loaded"


def _max_length(check: Mapping[str, Any], text: str, *_: object) -> str | None:
    length, most = len(text), check["characters"]
    return None if length <= most else f"{length} characters, at most {most}"


def _forbid(check: Mapping[str, Any], text: str, *_: object) -> str | None:
    for pattern in check["patterns"]:
        found = search(pattern, text)
        if found is not None:
            return f"contains {found!r}"
    return None


def _valid_json(check: Mapping[str, Any], text: str, _: Payload, harness: Harness) -> str | None:
    try:
        value = read_json(text)
    except ValueError as failure:
        return f"not JSON: {failure}"
    return find_violation(check.get("schema") or harness.reply_schema or {}, value)


def _cites_evidence(_: Mapping[str, Any], text: str, payload: Payload, *__: object) -> str | None:
    known = {number for source in _sources(payload) for number in numbers_in(source)}
    unknown = sorted(numbers_in(text) - known)
    return f"without evidence: {', '.join(map(str, unknown))}" if unknown else None


def _sources(payload: Payload) -> Iterator[str]:
    yield str(payload.get("prompt", ""))
    yield _json(payload.get("request"))
    for call in payload.get("tool_calls", ()):
        yield _json(call.get("result"))


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


_Check = Callable[[Mapping[str, Any], str, Payload, Harness], str | None]

_CHECKS: dict[str, _Check] = {
    "requires_skill": _requires_skill,
    "max_length": _max_length,
    "forbid": _forbid,
    "valid_json": _valid_json,
    "cites_evidence": _cites_evidence,
}
