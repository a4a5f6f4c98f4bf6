"""What is evaluated: an agent that answers at once, one that looks three things up, their judge, and numbered cases."""

import json
from typing import Any

SYSTEM = (
    "You are a support agent. Answer the question from the customer's record, and say where the order is."
)
RUBRIC = (
    "You grade an answer. accuracy is 0 or 1: whether every statement has evidence. effectiveness is 0, 0.5 or 1: "
    "whether it meets the question. Answer with one JSON object."
)
REASONS = {
    "type": "object",
    "additionalProperties": False,
    "required": ["accuracy", "effectiveness"],
    "properties": {"accuracy": {"type": "string"}, "effectiveness": {"type": "string"}},
}
FINDING = {
    "type": "object",
    "required": ["kind", "text"],
    "properties": {"kind": {"type": "string"}, "text": {"type": "string"}},
}
JUDGE_SCHEMA: dict[str, Any] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["accuracy", "effectiveness", "reasons", "findings"],
    "properties": {
        "accuracy": {"enum": [0, 1]},
        "effectiveness": {"enum": [0, 0.5, 1]},
        "reasons": REASONS,
        "findings": {"type": "array", "items": FINDING},
    },
}
TOOL: dict[str, Any] = {
    "name": "lookup",
    "description": "Look a record up by its number.",
    "parameters": {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]},
}
FIXTURES = {
    "lookup": [{"arguments": {"x": x}, "result": {"record": x, "state": "delivered"}} for x in range(3)]
}


def case_text(salt: str, number: int) -> str:
    """The question of a case; the salt keeps one run's calls from being another's."""
    return f"Run {salt}. Where is order No. {number}, and when was it placed?"


def judge_text(salt: str, number: int, reply: str) -> str:
    """What a judge is shown, about as our judge's prompt has it."""
    shown = {"question": case_text(salt, number), "reply": reply, "expected": expected(number)}
    return f"{RUBRIC}\n{json.dumps(shown)}"


def expected(number: int) -> dict[str, Any]:
    """What a right answer of a case states."""
    return {
        "facts": [{"fact": f"order No. {number} was delivered", "accept": ["delivered"]}],
        "forbidden": [],
    }


def agent_files(*, tools: bool, note: str = "") -> dict[str, bytes]:
    """A harness of one system section and the question; `note` makes another version that asks the same."""
    return {
        "harness.yaml": _config("agent", "  - {name: request, file: prompts/request.md, role: user}\n"),
        "prompts/role.md": SYSTEM.encode() + b"\n",
        "prompts/request.md": b"{{ danmaku[0].text }}\n",
        **(
            {"tools/lookup.yaml": json.dumps({**TOOL, "source": {"kind": "fixture"}}).encode()}
            if tools
            else {}
        ),
        **({"NOTES.md": note.encode()} if note else {}),
    }


def judge_files() -> dict[str, bytes]:
    """A judge of one call."""
    config = _config("judge", "  - {name: case, file: prompts/case.md, role: user}\n")
    shown = b"{{ {'request': case.request, 'reply': reply, 'expected': expected} | tojson }}\n"
    return {
        "harness.yaml": config + b"reply_schema: " + json.dumps(JUDGE_SCHEMA).encode() + b"\n",
        "prompts/role.md": RUBRIC.encode() + b"\n",
        "prompts/case.md": shown,
    }


def _config(kind: str, sections: str) -> bytes:
    return (
        f"format: 1\nname: bench-{kind}\nkind: {kind}\nmodel: {{temperature: 0}}\n"
        "limits: {turns: 8, tool_calls: 8, hook_retries: 2, seconds: 60}\n"
        f"prompt:\n  - {{name: role, file: prompts/role.md}}\n{sections}reply_skill_required: false\n"
    ).encode()
