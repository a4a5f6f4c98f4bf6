"""What is embedded of a failure: how it failed, what it was about, what the agent did then; each clipped.

A judge's reasons quote the reply, and replies of one skill resemble each other whatever went wrong; where there
are findings, their texts stand in for the reasons.
"""

from typing import Any

from evolution.loop.case_content import request_text
from evolution.models import FailureCase

LONGEST = 300
LAST_CALLS = 8


def build_failure_text(case: FailureCase) -> str:
    """Return what is embedded of a failure: findings or else symptom, request, conduct, a line each."""
    return "\n".join(part for part in (describe_failure(case), _clip(_conduct(case))) if part) or case.title


def describe_failure(case: FailureCase) -> str:
    """Return what a person would say of the failure: findings or else symptom, and the request."""
    findings = _dicts(case.findings)
    kinds = dict.fromkeys(_words(finding.get("kind")) for finding in findings)
    texts = "；".join(str(finding.get("text") or "") for finding in findings)
    parts = [" ".join(kinds), texts or case.symptom, request_text(case.request)]
    return "\n".join(_clip(part) for part in parts if part.strip())


def _conduct(case: FailureCase) -> str:
    """What the agent did in the turn that is blamed; else its skills and calls; of a single answer, the answer."""
    did = _blamed_turn(case) or _calls(case.trajectory)
    said = [entry for entry in _dicts(case.trajectory.get("messages")) if entry.get("role") == "assistant"]
    # The last reply of a conversation is mostly a farewell.
    return did or ("no tool call" if len(said) > 1 else case.reply)


def _blamed_turn(case: FailureCase) -> str:
    """The calls of the turn that the source blames and what went wrong in them, else what was said there."""
    turn = case.blamed_turn
    if not turn:
        return ""
    calls = [call for call in _dicts(case.trajectory.get("tool_calls")) if call.get("turn") == turn]
    said = [entry for entry in _dicts(case.trajectory.get("messages")) if entry.get("role") == "assistant"]
    content = said[turn - 1].get("content") if turn <= len(said) else ""
    return _calls({"tool_calls": calls}).strip("; ") or (content if isinstance(content, str) else "")


def _calls(trajectory: dict[str, Any]) -> str:
    """The skills loaded and the names of the last calls, repeated ones once, and what last went wrong in them."""
    calls = [call for call in _dicts(trajectory.get("tool_calls")) if call.get("name") != "load_skill"]
    names = [*(trajectory.get("skills_loaded") or []), *(call.get("name") for call in calls[-LAST_CALLS:])]
    errors = [str(call["error"]) for call in calls[-LAST_CALLS:] if call.get("error")]
    return "; ".join([", ".join(dict.fromkeys(_words(name) for name in names if name)), *errors[-1:]])


def _words(name: object) -> str:
    return str(name or "").replace("_", " ")


def _dicts(value: Any) -> list[dict[str, Any]]:
    return [entry for entry in value if isinstance(entry, dict)] if isinstance(value, list) else []


def _clip(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= LONGEST else line[:LONGEST]
