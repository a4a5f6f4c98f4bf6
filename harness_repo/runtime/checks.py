"""The checks of hooks: data in, "passes" or what is wrong out. Nothing of a rule is executed."""

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from harness_repo.format.cel import CelError, evaluate_cel
from harness_repo.format.harness import Harness
from harness_repo.format.json_schema import SchemaUnusable, find_violation
from harness_repo.format.patterns import PatternError, search
from harness_repo.runtime.evidence import VARIABLES, loaded_skills, own_prompt, results, to_json
from harness_repo.runtime.json_text import read_json
from harness_repo.runtime.numbers import without_evidence
from harness_repo.runtime.promises import find_promises, statements

Payload = Mapping[str, Any]


class CheckError(Exception):
    """A check that could not be made: an expression that fails, a regex that takes too long."""


def run_check(check: Mapping[str, Any], event: str, payload: Payload, harness: Harness) -> str | None:
    """None when the check passes, else what is wrong, in English. Raises CheckError."""
    if "cel" in check:
        return None if holds(check["cel"], payload) else "the condition does not hold"
    try:
        if "regex" in check:
            return _regex(check["regex"], subject(event, payload))
        if "kind" not in check:
            return _schema(check["schema"], event, payload, harness)
        return _CHECKS[check["kind"]](check, subject(event, payload), payload, harness)
    except (PatternError, SchemaUnusable, ArithmeticError, ValueError, RecursionError) as failure:
        raise CheckError(str(failure)) from failure


def applies(when: str | Mapping[str, Any], event: str, payload: Payload, harness: Harness) -> bool:
    """Whether a hook's condition, CEL or a check, is met. Raises CheckError."""
    return holds(when, payload) if isinstance(when, str) else run_check(when, event, payload, harness) is None


def holds(expression: str, payload: Payload) -> bool:
    """Whether a CEL expression is true of the payload. Raises CheckError."""
    try:
        return evaluate_cel(expression, {name: payload[name] for name in payload if name != VARIABLES})
    except CelError as failure:
        raise CheckError(str(failure)) from failure


def subject(event: str, payload: Payload) -> str:
    """The text that a check looks at: the danmaku, the call's arguments, its result, or the reply."""
    if event == "input":
        return "\n".join(str(item.get("text", "")) for item in payload.get("danmaku", ()))
    if event == "tool_call":
        return to_json(payload.get("tool", {}).get("arguments"))
    if event == "tool_result":
        return to_json(payload.get("result"))
    return str(payload.get("reply") or "")


def _regex(pattern: str, text: str) -> str | None:
    return None if search(pattern, text) is not None else f"{pattern!r} is not found"


def _schema(schema: Mapping[str, Any], event: str, payload: Payload, harness: Harness) -> str | None:
    try:
        return find_violation(schema, _value(event, payload, harness))
    except ValueError as failure:
        return f"not JSON: {failure}"


def _value(event: str, payload: Payload, harness: Harness) -> object:
    """What a schema is about: the request, the call's arguments, its result, or the reply. Raises ValueError."""
    if event == "input":
        return payload.get("request")
    if event == "tool_call":
        return payload.get("tool", {}).get("arguments")
    if event == "tool_result":
        return payload.get("result")
    reply = str(payload.get("reply") or "")
    return read_json(reply) if harness.reply_schema is not None else reply


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


def _cites_evidence(_: Mapping[str, Any], text: str, payload: Payload, harness: Harness) -> str | None:
    unknown = without_evidence(text, _told(payload, harness))
    return f"without evidence: {', '.join(unknown)}" if unknown else None


def _no_promise(check: Mapping[str, Any], text: str, payload: Payload, harness: Harness) -> str | None:
    told = [*own_prompt(harness, payload), *loaded_skills(harness, payload)]
    evidence = [*(line for source in told for line in statements(source)), *results(payload)]
    found = find_promises(text, evidence, check.get("phrases", ()), check.get("allow", ()))
    return f"promises without evidence: {'; '.join(found)}" if found else None


def _told(payload: Payload, harness: Harness) -> Iterator[str]:
    """All that the model was told, the words of viewers too."""
    yield str(payload.get("prompt", ""))
    yield to_json(payload.get("request"))
    yield from loaded_skills(harness, payload)
    yield from results(payload)


_Check = Callable[[Mapping[str, Any], str, Payload, Harness], str | None]

_CHECKS: dict[str, _Check] = {
    "requires_skill": _requires_skill,
    "max_length": _max_length,
    "forbid": _forbid,
    "valid_json": _valid_json,
    "cites_evidence": _cites_evidence,
    "no_promise": _no_promise,
}
