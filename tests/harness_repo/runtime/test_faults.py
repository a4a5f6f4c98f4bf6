import json
from typing import Any

import pytest

from harness_repo.format.tools import Tool
from harness_repo.runtime.faults import Fault, FaultPlan, parse_fault, read_faults, unknown_fault_tools
from harness_repo.runtime.sandbox import ToolOutcome, ToolSandbox

TOOLS = {name: Tool(name, "d", {"type": "object"}) for name in ("a", "b")}
TOOLS["slow"] = Tool(
    "slow", "d", {"type": "object"}, {"kind": "http", "url": "https://x.example", "seconds": 3}
)
FIXTURES = {name: [{"arguments": {}, "result": 1}] for name in TOOLS}


def plan(*faults: Fault, seed: str = "s", calls: str = "a" * 200) -> list[str | None]:
    made = FaultPlan(faults, seed)
    decided = [made.next(tool) for tool in calls]
    return [fault.kind if fault else None for fault in decided]


async def answer(fault: Fault, name: str = "a", arguments: str = "{}") -> ToolOutcome:
    return await ToolSandbox(TOOLS, FIXTURES, faults=[fault]).call(name, arguments)


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("timeout", "timeout: no answer within 10 seconds"),
        ("malformed", "malformed_result: the answer is not JSON"),
        ("permission_denied", "permission_denied: this caller may not use the tool"),
        ("server_error", "server_error: 500 Internal Server Error"),
    ],
)
async def test_a_fault_looks_like_the_failure_it_stands_for(kind: Any, error: str) -> None:
    outcome = await answer(Fault(kind))
    assert (outcome.result, outcome.error, outcome.fault) == (None, error, kind)


async def test_a_timeout_is_reported_and_not_waited_for() -> None:
    assert (await answer(Fault("timeout"), "slow")).ms == 3000


async def test_what_the_model_itself_does_wrong_is_no_fault() -> None:
    fault = Fault("timeout", times=1)
    sandbox = ToolSandbox(TOOLS, FIXTURES, faults=[fault])
    outcomes = [
        await sandbox.call(*call) for call in (("nowhere", "{}"), ("a", "[]"), ("a", "{}"), ("a", "{}"))
    ]
    assert [outcome.fault for outcome in outcomes] == [None, None, "timeout", None]


async def test_a_fault_goes_before_any_answer_even_one_that_is_not_there() -> None:
    sandbox = ToolSandbox(TOOLS, {}, faults=[Fault("server_error", "a")])
    assert (await sandbox.call("a", "{}")).fault == "server_error"
    assert (await sandbox.call("b", "{}")).error == "not_found"


def test_a_rate_is_the_share_of_calls() -> None:
    for rate in (0.0, 0.1, 0.5, 1.0):
        hits = sum(kind is not None for kind in plan(Fault("timeout", rate=rate), calls="a" * 2000))
        # Three standard deviations of a binomial count are at most 67 here.
        assert abs(hits - 2000 * rate) <= 67 * (0 < rate < 1)


def test_the_same_seed_decides_the_same_and_another_differently() -> None:
    fault = Fault("timeout", rate=0.5)
    assert plan(fault) == plan(fault)
    assert plan(fault) != plan(fault, seed="t")


def test_other_tools_in_between_change_nothing() -> None:
    fault = Fault("timeout", rate=0.5)
    alone = plan(fault, calls="a" * 50)
    mixed = plan(fault, calls="ab" * 50)
    assert mixed[::2] == alone
    assert mixed[1::2] != alone


def test_times_bounds_the_faults_of_each_tool() -> None:
    kinds = plan(Fault("timeout", times=2), calls="aabbaabb")
    assert kinds == ["timeout"] * 4 + [None] * 4


def test_the_first_fault_that_hits_is_the_one() -> None:
    faults = Fault("timeout", "a", times=1), Fault("malformed", "*")
    assert plan(*faults, calls="aab") == ["timeout", "malformed", "malformed"]


def test_faults_are_read_from_json_and_written_to_it() -> None:
    data = [{"kind": "timeout"}, {"kind": "malformed", "tool": "a", "rate": 0.5, "times": 2}]
    faults = read_faults(data)
    assert faults == (Fault("timeout"), Fault("malformed", "a", 0.5, 2))
    assert read_faults(json.loads(json.dumps([fault.to_dict() for fault in faults]))) == faults
    assert read_faults(None) == read_faults([]) == ()


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({}, "faults: not a list"),
        ("timeout", "faults: not a list"),
        (["timeout"], r"faults\[0\]: not an object"),
        ([{"kind": "timeout"}, {}], r"faults\[1\]: kind is one of timeout, malformed"),
        ([{"kind": ["timeout"]}], r"faults\[0\]: kind is one of"),
        ([{"kind": "timeout", "rate": 1.5}], "rate is a number from 0 to 1"),
        ([{"kind": "timeout", "rate": True}], "rate is a number"),
        ([{"kind": "timeout", "rate": float("nan")}], "rate is a number"),
        ([{"kind": "timeout", "tool": ""}], "tool is the name"),
        ([{"kind": "timeout", "times": 0}], "times is a whole number"),
        ([{"kind": "timeout", "chance": 1}], "chance is not known"),
    ],
)
def test_what_is_no_list_of_faults_is_said_with_its_place(data: object, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read_faults(data)


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("timeout", Fault("timeout")),
        ("malformed:get_stock", Fault("malformed", "get_stock")),
        ("server_error:*:0.25", Fault("server_error", "*", 0.25)),
        ("server_error::1", Fault("server_error", "*", 1.0)),
    ],
)
def test_a_command_line_has_faults_in_short(text: str, fault: Fault) -> None:
    assert parse_fault(text) == fault


@pytest.mark.parametrize("text", ["", "slow", "timeout:a:b", "timeout:a:2", "timeout:a:1:2", "timeout:a:nan"])
def test_what_is_no_fault_in_short_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"write|kind|rate"):
        parse_fault(text)


def test_faults_for_tools_that_are_not_there_are_told() -> None:
    faults = read_faults([{"kind": "timeout", "tool": name} for name in ("gone", "get_item", "*", "a")])
    assert unknown_fault_tools(faults, ["get_item"]) == ["a", "gone"]


@pytest.mark.parametrize("rate", ["0_1", "٠", " 0.5", "nan", "inf", "1e400", "+1", ""])
def test_a_rate_is_a_decimal_number(rate: str) -> None:
    with pytest.raises(ValueError, match="rate is a number from 0 to 1"):
        parse_fault(f"timeout:get_item:{rate}")


def test_the_runtimes_own_tool_does_not_fail() -> None:
    with pytest.raises(ValueError, match="load_skill is the runtime's own tool"):
        parse_fault("timeout:load_skill")
