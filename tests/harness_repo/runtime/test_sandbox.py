import json

import pytest

from harness_repo.harness import read_harness
from harness_repo.runtime.sandbox import ToolSandbox
from harness_repo.tools import Tool
from tests.harness_repo.build import FILES

TOOLS = read_harness(FILES).tools
LOOSE = {"find": Tool("find", "Finds.", {"type": "object"})}


def test_the_first_entry_whose_arguments_all_match_wins() -> None:
    fixtures = {
        "find": [
            {"arguments": {"id": 3, "region": "北京"}, "result": "both"},
            {"arguments": {"id": 3}, "result": "id"},
            {"arguments": {}, "result": "any"},
        ]
    }
    sandbox = ToolSandbox(LOOSE, fixtures)
    asked = [{"id": 3, "region": "北京"}, {"id": 3, "more": 1}, {"id": 4}, {}]
    assert [sandbox.call("find", json.dumps(one)).result for one in asked] == ["both", "id", "any", "any"]


def test_no_arguments_at_all_are_an_empty_object() -> None:
    assert ToolSandbox(LOOSE, {"find": [{"arguments": {}, "result": 1}]}).call("find", "").result == 1


def test_a_result_of_null_is_not_an_error() -> None:
    outcome = ToolSandbox(LOOSE, {"find": [{"arguments": {}, "result": None}]}).call("find", "{}")
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
def test_an_error_has_its_code_first(name: str, arguments: str, code: str) -> None:
    outcome = ToolSandbox(TOOLS, {}).call(name, arguments)
    assert outcome.error is not None
    assert outcome.error.split(":")[0] == code
    assert outcome.result is None
