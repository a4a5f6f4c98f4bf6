import asyncio
import json
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from harness_repo.format.harness import read_harness
from harness_repo.format.tools import Tool
from harness_repo.runtime import sandbox as sandbox_module
from harness_repo.runtime.sandbox import Fixtures, Prepared, ToolOutcome, ToolSandbox
from tests.harness_repo.build import FILES

TOOLS = read_harness(FILES).tools
LOOSE = {"find": Tool("find", "Finds.", {"type": "object"})}


async def test_the_first_entry_whose_arguments_all_match_wins() -> None:
    fixtures = {
        "find": [
            {"arguments": {"id": 3, "region": "北京"}, "result": "both"},
            {"arguments": {"id": 3}, "result": "id"},
            {"arguments": {}, "result": "any"},
        ]
    }
    sandbox = ToolSandbox(LOOSE, fixtures)
    asked = [{"id": 3, "region": "北京"}, {"id": 3, "more": 1}, {"id": 4}, {}]
    assert [(await sandbox.call("find", json.dumps(one))).result for one in asked] == [
        "both",
        "id",
        "any",
        "any",
    ]


async def test_no_arguments_at_all_are_an_empty_object() -> None:
    outcome = await ToolSandbox(LOOSE, {"find": [{"arguments": {}, "result": 1}]}).call("find", "")
    assert outcome.result == 1


async def test_a_result_of_null_is_not_an_error() -> None:
    outcome = await ToolSandbox(LOOSE, {"find": [{"arguments": {}, "result": None}]}).call("find", "{}")
    assert (outcome.result, outcome.error) == (None, None)


@pytest.mark.parametrize(
    ("name", "arguments", "code"),
    [
        ("get_item", '{"link_id": 3}', "not_found"),
        ("get_item", '{"link_id": "3"}', "bad_arguments"),
        ("get_item", '{"link_id": 3, "more": 1}', "bad_arguments"),
        ("get_item", "{}", "bad_arguments"),
        ("get_item", "nonsense", "bad_arguments"),
        ("get_item", "[" * 100_000, "bad_arguments"),
        ("get_item", '{"link_id": 1e999}', "bad_arguments"),
        ("get_item", '{"link_id": ' + "[" * 60 + "]" * 60 + "}", "bad_arguments"),
        ("other", "{}", "unknown_tool"),
    ],
)
async def test_an_error_has_its_code_first(name: str, arguments: str, code: str) -> None:
    outcome = await ToolSandbox(TOOLS, {}).call(name, arguments)
    assert outcome.error is not None
    assert outcome.error.split(":")[0] == code
    assert outcome.result is None


CATALOGUE = {
    "products": [
        {"link_id": 1, "name": "防晒霜", "stock": 0},
        {"link_id": 3, "name": "羊绒围巾", "stock": 12},
    ]
}


def select(expression: str) -> dict[str, Tool]:
    return {"find": Tool("find", "Finds.", {"type": "object"}, {"kind": "fixture", "select": expression})}


@pytest.mark.parametrize(
    ("expression", "arguments", "result"),
    [
        ("context.products[?link_id == {link_id}] | [0].name", {"link_id": 3}, "羊绒围巾"),
        ("context.products[?name == {name}].link_id", {"name": "羊绒围巾"}, [3]),
        ("context.products[?contains(name, {word})].{id: link_id}",
         {"word": "防晒"}, [{"id": 1}]),
        ("arguments", {"a": "`'\"\\"}, {"a": "`'\"\\"}),
        ("{a}", {"a": "`'\"\\"}, "`'\"\\"),
        ("{a}", {"a": {"b": [1, None]}}, {"b": [1, None]}),
        ("'{a}'", {"a": 1}, "{a}"),
        ("{missing} || 'none'", {}, "none"),
        ("request.danmaku[0].text", {}, "在吗"),
    ],
)  # fmt: skip
async def test_a_fixture_tool_selects_from_what_the_case_has(
    expression: str, arguments: dict[str, object], result: object
) -> None:
    request = {"danmaku": [{"text": "在吗"}]}
    sandbox = ToolSandbox(select(expression), {}, context=CATALOGUE, request=request)
    outcome = await sandbox.call("find", json.dumps(arguments))
    assert (outcome.result, outcome.error) == (result, None)


async def test_nothing_selected_is_not_found() -> None:
    sandbox = ToolSandbox(select("context.products[?link_id == {link_id}] | [0]"), {}, context=CATALOGUE)
    assert (await sandbox.call("find", '{"link_id": 9}')).error == "not_found"


async def test_fixtures_go_before_select() -> None:
    fixtures = {"find": [{"arguments": {"link_id": 1}, "result": "of the case"}]}
    sandbox = ToolSandbox(select("context.products[0].name"), fixtures, context=CATALOGUE)
    asked = [await sandbox.call("find", json.dumps({"link_id": number})) for number in (1, 2)]
    assert [outcome.result for outcome in asked] == ["of the case", "防晒霜"]


async def test_an_expression_that_cannot_be_applied_is_a_malformed_result() -> None:
    outcome = await ToolSandbox(select("abs(context)"), {}).call("find", "{}")
    assert (outcome.error or "").startswith("malformed_result: nothing can be selected: In function abs()")


async def test_a_result_that_breaks_its_schema_is_malformed() -> None:
    schema = {"type": "object", "required": ["price"]}
    tools = {"find": replace(LOOSE["find"], result_schema=schema)}
    fixtures: Fixtures = {
        "find": [{"arguments": {"a": 1}, "result": {"price": 1}}, {"arguments": {}, "result": {}}]
    }
    sandbox = ToolSandbox(tools, fixtures)
    assert (await sandbox.call("find", '{"a": 1}')).result == {"price": 1}
    outcome = await sandbox.call("find", "{}")
    assert (outcome.result, outcome.error) == (None, "malformed_result: $: 'price' is a required property")


@pytest.mark.parametrize(
    "source",
    [
        {"kind": "http", "url": "https://shop.example/x"},
        {"kind": "mcp", "url": "https://shop.example/mcp"},
        {"kind": "mcp", "command": ["server"]},
    ],
)
async def test_without_a_grant_nothing_goes_out(source: dict[str, object]) -> None:
    tools = {"find": replace(LOOSE["find"], source=source)}
    prepared = ToolSandbox(tools, {}).prepare("find", "{}")
    assert isinstance(prepared, ToolOutcome)
    assert (prepared.error or "").startswith("permission_denied: ")


async def test_a_live_tool_with_fixtures_never_goes_out() -> None:
    tools = {"find": replace(LOOSE["find"], source={"kind": "http", "url": "https://shop.example/x"})}
    fixtures: Fixtures = {"find": []}
    outcome = await ToolSandbox(tools, fixtures).call("find", "{}")
    assert outcome.error == "not_found"


class NeverClosing:
    """A source that hangs when it is closed."""

    async def call(self, tool: Tool, arguments: Mapping[str, Any]) -> object:
        return {tool.name: arguments}

    async def close(self) -> None:
        await asyncio.Event().wait()


async def test_a_source_that_does_not_close_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module, "MOST_CLOSING_SECONDS", 0.1)
    monkeypatch.setitem(sandbox_module._SOURCES, "mcp", lambda _: NeverClosing())
    tool = replace(LOOSE["find"], source={"kind": "mcp"})
    began = time.monotonic()
    async with ToolSandbox({}, {}) as sandbox:
        assert (await sandbox.perform(Prepared(tool, {}))).error is None
    await asyncio.sleep(0)
    assert time.monotonic() - began < 1
    assert asyncio.all_tasks() == {asyncio.current_task()}
