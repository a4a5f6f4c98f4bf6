import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.shared.tool_name_validation import validate_tool_name

from harness_repo.format.json_schema import load_schema
from harness_repo.format.problems import Problem
from harness_repo.format.tool_sources import known_source
from harness_repo.format.tools import Tool, parse_tool

PATH = "tools/a.yaml"


def parse(source: str, more: str = "") -> tuple[Tool | None, list[Problem]]:
    text = f"""name: get_item
description: Looks up an item.
parameters:
  type: object
  properties: {{link_id: {{type: integer}}, region: {{type: string}}}}
  required: [link_id]
{more}source: {source}
"""
    return parse_tool(PATH, text.encode())


def codes(source: str, more: str = "") -> list[tuple[int, str]]:
    return [(problem.line, problem.code) for problem in parse(source, more)[1]]


@pytest.mark.parametrize(
    "source",
    [
        "{kind: fixture}",
        "{kind: fixture, select: 'context.products[?link_id == {link_id}] | [0]'}",
        "{kind: http, url: 'https://shop.example/items/{link_id}'}",
        "{kind: http, method: POST, url: 'https://x/', query: {r: '{region}', page: 1}, seconds: 3, select: a.b}",
        "{kind: http, method: PUT, url: 'https://x/', headers: {A: 'B ${secret:C}'}, body: {id: '{link_id}'}}",
        "{kind: mcp, url: 'https://shop.example/mcp', headers: {X-Key: '${secret:SHOP}'}, tool: shop.get_item}",
        "{kind: mcp, command: [npx, -y, server], seconds: 30}",
    ],
)
def test_every_source_is_read(source: str) -> None:
    tool, problems = parse(source)
    assert problems == []
    assert tool is not None
    assert tool.source["kind"] in {"fixture", "http", "mcp"}


@pytest.mark.parametrize(
    ("source", "code"),
    [
        ('{kind: mcp, url: "https://x/", tool: "a\\n"}', "schema"),
        ('{kind: http, url: "https://x/", headers: {"A": "b\\n"}}', "schema"),
        ('{kind: http, url: "https://x/", headers: {"A\\n": b}}', "schema"),
        ("{kind: shell}", "schema"),
        ("{kind: http}", "schema"),
        ("{kind: http, url: 'ftp://x'}", "schema"),
        ("{kind: http, url: 'https://x/', method: TRACE}", "schema"),
        ("{kind: http, url: 'https://x/', seconds: 0}", "schema"),
        ("{kind: http, url: 'https://x/', seconds: 1000}", "schema"),
        ('{kind: http, url: "https://x/", headers: {A: "b\\r\\nC: d"}}', "schema"),
        ("{kind: http, url: 'https://x/', headers: {'a b': c}}", "schema"),
        ("{kind: mcp}", "schema"),
        ("{kind: mcp, url: 'https://x/', command: [a]}", "schema"),
        ("{kind: mcp, command: [a], headers: {A: b}}", "schema"),
        ("{kind: mcp, command: []}", "schema"),
        ("{kind: mcp, command: [a], tool: 'a b'}", "schema"),
        ("{kind: fixture, select: 'a['}", "select_syntax"),
        ("{kind: fixture, select: 'a[?b == {nothing}]'}", "tool_template"),
        ("{kind: http, url: 'https://x/{nothing}'}", "tool_template"),
        ("{kind: http, url: 'https://x/{region}'}", "tool_template"),
        ("{kind: http, url: 'https://x/', body: [{a: '{nothing}'}]}", "tool_template"),
        ("{kind: mcp, command: [a, '{link_id}']}", "tool_template"),
        ("{kind: http, url: 'https://{link_id}.example/'}", "tool_url"),
        ("{kind: http, url: 'https://x:{link_id}/'}", "tool_url"),
        ("{kind: http, url: 'https://me:word@x/'}", "tool_url"),
        ("{kind: http, url: 'https://x/a#b'}", "tool_url"),
        ("{kind: http, url: 'https://x/../b'}", "tool_url"),
        ("{kind: http, url: 'https://x:port/'}", "tool_url"),
        ("{kind: http, url: 'https://x/', headers: {Host: other}}", "tool_header"),
        ("{kind: http, url: 'https://x/', headers: {Content-Length: '1'}}", "tool_header"),
        ("{kind: http, url: 'https://x/', headers: {A: '${secret:}'}}", "tool_secret"),
        ("{kind: http, url: 'https://x/', headers: {A: '${ENV}'}}", "tool_secret"),
        ("{kind: http, url: 'https://x/?k=${secret:K}'}", "tool_secret"),
        ("{kind: http, url: 'https://x/', body: {k: '${secret:K}'}}", "tool_secret"),
    ],
)
def test_a_source_that_cannot_be_used_is_an_error_on_its_line(source: str, code: str) -> None:
    tool, _ = parse(source)
    assert tool is None
    assert (7, code) in codes(source)


def test_a_problem_stands_on_the_line_of_what_is_wrong() -> None:
    source = "\n  kind: http\n  url: https://x/\n  headers:\n    A: b\n    Host: c\n  select: 'a['"
    assert codes(source) == [(12, "tool_header"), (13, "select_syntax")]


def test_a_key_that_nobody_knows_is_a_warning() -> None:
    tool, problems = parse("{kind: fixture, url: 'https://x/'}")
    assert tool is not None
    assert tool.source == {"kind": "fixture"}
    assert [(problem.code, problem.is_error) for problem in problems] == [("unknown_key", False)]


def test_a_result_schema_has_to_be_one() -> None:
    tool, _ = parse("{kind: fixture}", "result_schema: {type: object}\n")
    assert tool is not None
    assert tool.result_schema == {"type": "object"}
    assert codes("{kind: fixture}", "result_schema: {type: thing}\n") == [(7, "tool_result_schema")]


def test_a_tool_may_take_ten_seconds_unless_it_says_otherwise() -> None:
    found = [parse(source)[0] for source in ("{kind: fixture}", "{kind: mcp, command: [a], seconds: 2.5}")]
    assert [tool.seconds for tool in found if tool] == [10.0, 2.5]


@pytest.mark.parametrize("name", ["a", "Get_item-2", "x" * 64])
def test_a_name_that_chat_completions_allow_is_one_of_mcp_too(name: str) -> None:
    data = f"name: {name}\ndescription: d\nparameters: {{type: object}}\nsource: {{kind: fixture}}\n"
    tool, problems = parse_tool(PATH, data.encode())
    assert (problems, tool and tool.name) == ([], name)
    assert validate_tool_name(name).is_valid


@pytest.mark.parametrize("name", ["", "a.b", "a b", "查询", "x" * 65])
def test_another_name_is_an_error(name: Any) -> None:
    data = f"name: '{name}'\ndescription: d\nparameters: {{type: object}}\nsource: {{kind: fixture}}\n"
    tool, problems = parse_tool(PATH, data.encode())
    assert (tool, [(problem.line, problem.code) for problem in problems]) == (None, [(1, "schema")])


TEXTS = st.sampled_from(
    [
        "{link_id}",
        "{x}",
        "https://x/{link_id}",
        "http://[",
        "https://a b/",
        "${secret:A}",
        "a[?b == {x}]",
        "`",
        "",
    ]
) | st.text(max_size=8)
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=6,
)
KEYS = ("url", "command", "method", "query", "headers", "body", "seconds", "select", "tool")
SOURCES = st.fixed_dictionaries(
    {"kind": st.sampled_from(["fixture", "http", "mcp"])}, optional=dict.fromkeys(KEYS, VALUES)
)
PARAMETERS = st.fixed_dictionaries(
    {"type": st.just("object")}, optional={"properties": VALUES, "required": VALUES}
)


@given(SOURCES | VALUES, PARAMETERS | VALUES)
@settings(max_examples=300, deadline=None)
def test_no_tool_file_stops_the_reading(source: Any, parameters: Any) -> None:
    values = {"name": "a", "description": "d", "parameters": parameters, "source": source}
    text = json.dumps(values, indent=1)
    tool, problems = parse_tool(PATH, text.encode())
    assert (tool is None) == any(problem.is_error for problem in problems)
    assert all(0 <= problem.line <= text.count("\n") + 1 for problem in problems)


@pytest.mark.parametrize("kind", ["fixture", "http", "mcp"])
def test_what_a_kind_knows_is_what_the_schema_says(kind: str) -> None:
    rules = load_schema("tool")["properties"]["source"]["allOf"]
    rule = next(one for one in rules if one["if"]["properties"]["kind"]["const"] == kind)
    everything = dict.fromkeys([*KEYS, "kind", "more"], kind)
    assert set(known_source(everything)) == set(rule["then"]["properties"])


def test_all_that_is_wrong_in_a_tool_is_told_at_once() -> None:
    text = """name: a name
description: d
parameters: {type: object, properties: {a: {type: thing}}}
result_schema: {type: thing}
source:
  kind: http
  method: TRACE
  url: https://me:word@x/{b}
  headers:
    Host: c
    A: ${ENV}
  body: "${secret:A}"
  select: "a[?b == {c}"
"""
    found = {(problem.line, problem.code) for problem in parse_tool(PATH, text.encode())[1]}
    assert found == {
        (1, "schema"),
        (3, "tool_parameters"),
        (4, "tool_result_schema"),
        (7, "schema"),
        (8, "tool_template"),
        (8, "tool_url"),
        (10, "tool_header"),
        (11, "tool_secret"),
        (12, "tool_secret"),
        (13, "select_syntax"),
        (13, "tool_template"),
    }
