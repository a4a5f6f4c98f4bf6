"""The shipped avatar through every source of tools, every fault, and every kind of hook."""

import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from harness_repo.format.harness import Harness, read_harness
from harness_repo.runtime.access import Secret, ToolAccess
from harness_repo.runtime.agent import run_agent
from harness_repo.runtime.chat import ChatReply
from harness_repo.runtime.context import build_variables
from harness_repo.runtime.faults import KINDS, Fault
from harness_repo.runtime.sandbox import ToolSandbox
from harness_repo.runtime.trajectory import Trajectory
from harness_repo.starters import starter_files
from tests.harness_repo.runtime.scripted import ScriptedModel, call, load, say
from tests.harness_repo.runtime.sources import shop_server
from tests.harness_repo.runtime.sources.test_mcp_source import serve_mcp
from tests.harness_repo.runtime.sources.web import Shop, serve_shop

FILES = starter_files("live_commerce")
ASK = call(("get_stock", {"link_id": 3}))
REQUEST = {"danmaku": [{"user": "小林", "text": "3号还有货吗"}]}
CONTEXT: dict[str, Any] = {
    "room": {"name": "晨间好物", "host": "小禾", "current_link": 3, "started": "09:00", "script": "围巾"},
    "products": [{"link_id": 3, "name": "羊绒围巾"}],
    "stock": [{"link_id": 1, "stock": 0}, {"link_id": 3, "name": "羊绒围巾", "stock": 12}],
}
SERVER = [sys.executable, str(Path(shop_server.__file__))]


@pytest.fixture
def shop() -> Iterator[Shop]:
    with serve_shop() as serving:
        yield serving


@pytest.fixture(scope="module")
def mcp_url() -> Iterator[str]:
    with serve_mcp() as url:
        yield url


def with_source(source: str) -> Harness:
    """The starter with another source of get_stock, which has to read without problems."""
    path = "tools/get_stock.yaml"
    files = {**FILES, path: FILES[path].replace(b"{kind: fixture}", source.encode())}
    return clean(files)


def with_hook(text: str) -> Harness:
    return clean({**FILES, "hooks/a_rule.yaml": f"name: a_rule\n{text}".encode()})


def clean(files: Mapping[str, bytes]) -> Harness:
    harness = read_harness(dict(files))
    assert [str(problem) for problem in harness.problems] == []
    return harness


async def run(harness: Harness, *answers: ChatReply, **settings: Any) -> Trajectory:
    fixtures = settings.pop("fixtures", {})
    variables = build_variables(REQUEST, CONTEXT)
    async with ToolSandbox(harness.tools, fixtures, context=CONTEXT, request=REQUEST, **settings) as sandbox:
        model = ScriptedModel(list(answers))
        return await run_agent(harness, variables, model, model_name="m", sandbox=sandbox)


async def stock_answer(harness: Harness, **settings: Any) -> Trajectory:
    """Load a skill, ask for the stock, reply."""
    return await run(harness, load("stock-qa"), ASK, say("3号链接还有12件。"), **settings)


async def test_the_cases_fixtures() -> None:
    fixtures = {"get_stock": [{"arguments": {"link_id": 3}, "result": {"stock": 12}}]}
    trajectory = await stock_answer(clean(FILES), fixtures=fixtures)
    assert (trajectory.status, trajectory.evidence()[0]["result"]) == ("ok", {"stock": 12})


async def test_a_selection_from_the_cases_context() -> None:
    harness = with_source("{kind: fixture, select: 'context.stock[?link_id == {link_id}] | [0]'}")
    trajectory = await stock_answer(harness)
    assert trajectory.evidence()[0]["result"] == {"link_id": 3, "name": "羊绒围巾", "stock": 12}


async def test_a_service(shop: Shop) -> None:
    harness = with_source(
        f"{{kind: http, url: '{shop.url}/items/{{link_id}}', headers: {{X-Key: '${{secret:KEY}}'}}}}"
    )
    hosts = frozenset({shop.url})
    access = ToolAccess(hosts=hosts, secrets={"KEY": Secret("k-1", hosts)})
    trajectory = await stock_answer(harness, access=access)
    assert trajectory.evidence()[0]["result"]["price"] == 89
    assert shop.requests[0]["headers"]["x-key"] == "k-1"
    assert "k-1" not in repr(trajectory)


async def test_a_server_that_is_started() -> None:
    harness = with_source(f"{{kind: mcp, command: {SERVER}}}")
    # A start takes a second or two of the run's twenty.
    trajectory = await stock_answer(harness, access=ToolAccess(commands=frozenset({tuple(SERVER)})))
    assert trajectory.evidence()[0]["result"] == {"name": "羊绒围巾", "stock": 12, "link_id": 3}


async def test_a_server_that_is_reached(mcp_url: str) -> None:
    harness = with_source(f"{{kind: mcp, url: '{mcp_url}', select: '{{stock: stock}}'}}")
    access = ToolAccess(hosts=frozenset({mcp_url.removesuffix("/mcp")}))
    trajectory = await stock_answer(harness, access=access)
    assert trajectory.evidence()[0]["result"] == {"stock": 12}


async def test_without_a_grant_the_model_is_told_so_and_goes_on() -> None:
    harness = with_source("{kind: http, url: 'https://shop.example/{link_id}'}")
    trajectory = await stock_answer(harness)
    assert trajectory.status == "ok"
    assert trajectory.evidence()[0]["error"] == "permission_denied"


@pytest.mark.parametrize("kind", KINDS)
async def test_every_fault_is_told_recorded_and_survived(kind: Any) -> None:
    trajectory = await stock_answer(clean(FILES), faults=[Fault(kind, "get_stock")])
    code = {"malformed": "malformed_result"}.get(kind, kind)
    assert trajectory.status == "ok"
    assert trajectory.tool_calls[-1].fault == kind
    assert trajectory.evidence() == [{"tool": "get_stock", "arguments": {"link_id": 3}, "error": code}]
    assert f'{{"error": "{code}: ' in trajectory.messages[-2]["content"]


FIXTURES = {"get_stock": [{"arguments": {}, "result": {"stock": 12}}]}


@pytest.mark.parametrize(
    ("rule", "wrong"),
    [
        ("check: {kind: no_promise}", "3号链接还有12件，保证明天到！"),
        ("check: {kind: cites_evidence}", "3号链接还有120件。"),
        ("check: {kind: forbid, patterns: [闭眼入]}", "闭眼入！"),
        ("check: {kind: max_length, characters: 30}", "3号链接还有12件。" * 5),
        ("check: {regex: '号链接'}", "还有12件。"),
        ("check: {schema: {type: string, pattern: '件'}}", "3号链接有货。"),
        ("check: {cel: 'reply.contains(\"12\")'}", "3号链接有货。"),
        ("when: {kind: requires_skill, skills: [stock-qa]}\ncheck: {regex: '12'}", "3号链接有货。"),
        ("when: 'tool_calls.size() > 0'\ncheck: {cel: 'reply.contains(\"12\")'}", "3号链接有货。"),
    ],
)
async def test_every_check_of_a_reply_can_ask_for_another_one(rule: str, wrong: str) -> None:
    harness = with_hook(f"event: reply\n{rule}\non_fail: {{action: retry, message: 'again: {{detail}}'}}\n")
    good = "3号链接还有12件。"
    trajectory = await run(harness, load("stock-qa"), ASK, say(wrong), say(good), fixtures=FIXTURES)
    assert (trajectory.status, trajectory.reply) == ("ok", good)
    outcomes = [made.outcome for made in trajectory.hooks if made.hook == "a_rule"]
    assert outcomes == ["retry", "pass"]


async def test_a_reply_that_never_fits_ends_the_run_after_the_retries() -> None:
    harness = with_hook("event: reply\ncheck: {kind: no_promise}\non_fail: {action: retry, message: m}\n")
    promise = say("保证明天到！")
    trajectory = await run(harness, load("stock-qa"), promise, promise, promise)
    assert (trajectory.status, trajectory.reply) == ("hook_limit", "保证明天到！")


@pytest.mark.parametrize(
    ("on_fail", "status", "reply"),
    [
        ("{action: block, reply: 请稍等，我核实一下}", "blocked", "请稍等，我核实一下"),
        ("{action: rewrite, reply: 以页面为准}", "ok", "以页面为准"),
        ("{action: rewrite, substitute: [{pattern: '，保证.*', replacement: 。}]}", "ok", "还有货。"),
        ("{action: warn}", "ok", "还有货，保证明天到"),
    ],
)
async def test_every_way_to_deal_with_a_reply(on_fail: str, status: str, reply: str) -> None:
    harness = with_hook(f"event: reply\ncheck: {{kind: no_promise}}\non_fail: {on_fail}\n")
    trajectory = await run(harness, load("stock-qa"), say("还有货，保证明天到"))
    assert (trajectory.status, trajectory.reply) == (status, reply)


@pytest.mark.parametrize(
    ("event", "check"),
    [
        ("tool_call", "{schema: {properties: {link_id: {maximum: 2}}}}"),
        ("tool_call", "{cel: 'tool.name != \"get_stock\" || tool.arguments.link_id != 3'}"),
        ("tool_result", "{schema: {properties: {stock: {maximum: 2}}}}"),
        ("tool_result", "{kind: forbid, patterns: ['12']}"),
    ],
)
async def test_a_tool_call_that_a_hook_refuses_goes_back_to_the_model(event: str, check: str) -> None:
    harness = with_hook(
        f"event: {event}\ncheck: {check}\non_fail: {{action: retry, message: not this one}}\n"
    )
    trajectory = await stock_answer(harness, fixtures=FIXTURES)
    assert trajectory.status == "ok"
    assert trajectory.tool_calls[-1].error == "refused: not this one"


async def test_a_request_that_a_hook_blocks_never_reaches_the_model() -> None:
    harness = with_hook(
        "event: input\ncheck: {kind: forbid, patterns: [有货]}\non_fail: {action: block, reply: 稍后}\n"
    )
    trajectory = await run(harness)
    assert (trajectory.status, trajectory.reply, trajectory.calls) == ("blocked", "稍后", [])
