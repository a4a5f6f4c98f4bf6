import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_repo.format.hooks import Hook, parse_hook

PATH = "hooks/a.yaml"
HEAD = "name: a\nevent: reply\n"
TAIL = "on_fail: {action: warn}\n"


def parse(middle: str, head: str = HEAD) -> tuple[Hook | None, list[tuple[int, str]]]:
    hook, problems = parse_hook(PATH, f"{head}{middle}\n{TAIL}".encode())
    return hook, [(problem.line, problem.code) for problem in problems]


@pytest.mark.parametrize(
    "middle",
    [
        "check: {cel: 'turn > 1'}",
        "check: {regex: '^[0-9]+'}",
        "check: {schema: {type: string}}",
        "check: {kind: no_promise}",
        "check: {kind: no_promise, phrases: [闭眼入], allow: [保证金]}",
        "check: {kind: cites_evidence}",
        "check: {kind: valid_json, schema: {type: object}}",
        "when: 'turn > 1'\ncheck: {kind: cites_evidence}",
        "when: {regex: 退}\ncheck: {kind: max_length, characters: 3}",
        "when: {kind: requires_skill, skill_kind: reply}\ncheck: {kind: valid_json}",
    ],
)
def test_every_form_of_condition_and_check_is_read(middle: str) -> None:
    hook, problems = parse(middle)
    assert problems == []
    assert hook is not None


@pytest.mark.parametrize(
    ("middle", "problems"),
    [
        ("check: {}", [(3, "schema")]),
        ("check: {rule: x}", [(3, "unknown_key"), (3, "schema")]),
        ("check: {cel: 'true', regex: x}", [(3, "schema")]),
        ("check: {regex: '('}", [(3, "regex_syntax")]),
        ("check:\n  schema: {type: strange}", [(4, "check_schema")]),
        ("check: {kind: no_promise, phrases: ['']}", [(3, "schema")]),
        ("check: {kind: something_else}", [(3, "schema")]),
        ("when: ''\ncheck: {kind: valid_json}", [(3, "schema")]),
        ("when: 3\ncheck: {kind: valid_json}", [(3, "schema")]),
        ("when: {kind: forbid, patterns: ['(']}\ncheck: {kind: valid_json}", [(3, "regex_syntax")]),
        ("when:\n  cel: 'turn >'\ncheck: {kind: valid_json}", [(4, "cel_syntax")]),
        ("when: 'turn >'\ncheck: {kind: valid_json}", [(3, "cel_syntax")]),
    ],
)
def test_what_cannot_be_a_rule_is_said_with_its_line(middle: str, problems: list[tuple[int, str]]) -> None:
    assert parse(middle) == (None, problems)


@pytest.mark.parametrize("kind", ["cites_evidence", "no_promise"])
def test_what_is_said_in_replies_is_checked_in_replies(kind: str) -> None:
    head = "name: a\nevent: tool_result\n"
    assert parse(f"check: {{kind: {kind}}}", head) == (None, [(3, "hook_check")])


def test_a_key_of_another_check_is_only_a_warning() -> None:
    hook, problems = parse("check: {kind: max_length, characters: 3, patterns: [x]}")
    assert problems == [(3, "unknown_key")]
    assert hook is not None
    assert hook.check == {"kind": "max_length", "characters": 3}


def test_the_skills_of_condition_and_check_are_known() -> None:
    hook, _ = parse(
        "when: {kind: requires_skill, skills: [a]}\ncheck: {kind: requires_skill, skills: [b, c]}"
    )
    assert hook is not None
    assert hook.named_skills() == ["a", "b", "c"]


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.sampled_from(["(", "turn >", "reply", "[a-", "object", ""]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["type", "$ref", "a"]), inner)
    ),
    max_leaves=5,
)
KEYS = (
    "kind",
    "cel",
    "schema",
    "regex",
    "patterns",
    "characters",
    "skills",
    "phrases",
    "allow",
    "skill_kind",
)
KINDS = st.sampled_from(
    ["forbid", "max_length", "valid_json", "no_promise", "requires_skill", "cites_evidence"]
)
CHECKS = VALUES | st.fixed_dictionaries({}, optional={**dict.fromkeys(KEYS, VALUES), "kind": KINDS})


@given(CHECKS, CHECKS, st.sampled_from(["input", "tool_call", "tool_result", "reply"]))
@settings(max_examples=300, deadline=None)
def test_no_hook_file_stops_the_reading(when: Any, check: Any, event: str) -> None:
    values = {"name": "a", "event": event, "when": when, "check": check, "on_fail": {"action": "warn"}}
    text = json.dumps(values, indent=1)
    hook, problems = parse_hook(PATH, text.encode())
    assert (hook is None) == any(problem.is_error for problem in problems)
    assert all(0 <= problem.line <= text.count("\n") + 1 for problem in problems)
