import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from harness_repo.format import hooks
from harness_repo.format.cel_names import EVENT_VARIABLES, VARIABLES
from harness_repo.format.hooks import Hook, known_check, parse_hook
from harness_repo.format.json_schema import load_schema
from harness_repo.runtime.hooks import EMPTY_PAYLOAD

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


@pytest.mark.parametrize("rule", load_schema("hook")["$defs"]["named_check"]["allOf"])
def test_what_a_check_knows_is_what_the_schema_says(rule: dict[str, Any]) -> None:
    kind = rule["if"]["properties"]["kind"]["const"]
    everything = {**dict.fromkeys(itertools.chain(*hooks._SETTINGS.values(), ["more"])), "kind": kind}
    assert set(known_check(everything)) == set(rule["then"]["properties"])


@pytest.mark.parametrize(
    ("event", "source", "code", "said"),
    [
        ("reply", "foo == 1", "cel_variable", "there is no 'foo', column 1"),
        ("reply", "has(foo.bar)", "cel_variable", "there is no 'foo', column 5"),
        ("reply", "tool_calls.all(c, c.name == d)", "cel_variable", "there is no 'd', column 29"),
        ("reply", "[1].reduce(sum, x, x, sum + x) == 1", "cel_variable", "there is no 'x', column 20"),
        ("reply", "tool.name == 'x'", "cel_variable", "there is no 'tool' at reply, column 1"),
        ("input", "reply == ''", "cel_variable", "there is no 'reply' at input, column 1"),
        ("tool_call", "result == 1", "cel_variable", "there is no 'result' at tool_call, column 1"),
        ("reply", "lower(reply) == ''", "cel_function", "there is no function 'lower', column 1"),
        ("reply", "reply.lower() == ''", "cel_function", "there is no function 'lower', column 7"),
    ],
)
@pytest.mark.parametrize("where", ["when: {0}\ncheck: {{kind: valid_json}}", "check: {{cel: {0}}}"])
def test_a_name_that_is_never_there_is_an_error(
    event: str, source: str, code: str, said: str, where: str
) -> None:
    text = f"name: a\nevent: {event}\n{where.format(json.dumps(source))}\n{TAIL}"
    hook, problems = parse_hook(PATH, text.encode())
    assert (hook, [(one.line, one.code, one.message) for one in problems]) == (None, [(3, code, said)])
    assert code != "cel_variable" or "there are: danmaku, prompt, re" in problems[0].hint


@pytest.mark.parametrize("event", EVENT_VARIABLES)
def test_what_an_event_has_and_what_a_macro_names_is_known(event: str) -> None:
    every = " || ".join(f"type({name}) == int" for name in sorted(EVENT_VARIABLES[event]))
    source = (
        f"{every} || skills_loaded.exists(x, danmaku.all(y, x == y)) || has(request.a) || size(prompt) > 1"
    )
    text = f"name: a\nevent: {event}\ncheck: {{cel: {json.dumps(source)}}}\n{TAIL}"
    assert parse_hook(PATH, text.encode())[1] == []


def test_the_names_of_all_events_are_those_that_are_set() -> None:
    assert frozenset(EMPTY_PAYLOAD) == VARIABLES


def test_all_that_is_wrong_in_a_hook_is_told_at_once() -> None:
    text = """name: "?"
event: nowhere
when: foo > 1
check: {kind: forbid, patterns: [a, "("]}
on_fail:
  action: explode
  substitute: [{pattern: "[", replacement: x}, 3]
"""
    found = {(problem.line, problem.code) for problem in parse_hook(PATH, text.encode())[1]}
    schema = {(1, "schema"), (2, "schema"), (6, "schema"), (7, "schema")}
    assert found == schema | {(3, "cel_variable"), (4, "regex_syntax"), (7, "regex_syntax")}
