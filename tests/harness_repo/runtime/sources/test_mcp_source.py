import asyncio
import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest

from harness_repo.format.tools import Tool
from harness_repo.runtime.access import Secret, ToolAccess
from harness_repo.runtime.sandbox import ToolSandbox
from harness_repo.runtime.sources import mcp_source
from tests.harness_repo.runtime.sources.silent_server import serve_silent
from tests.harness_repo.runtime.sources.web import Shop

SERVER = [sys.executable, str(Path(__file__).with_name("shop_server.py"))]
BROKEN = [*SERVER, "--broken"]
NOWHERE = ["/nowhere/to/be/found"]
TOKEN = "tok-5f0c9a"


@contextmanager
def serve_mcp() -> Iterator[str]:
    """A real server over HTTP, in a process of its own; gives its URL."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    with subprocess.Popen(
        [*SERVER, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    ) as process:
        try:
            _wait_until_listening(port)
            yield f"http://127.0.0.1:{port}/mcp"
        finally:
            process.kill()


def _wait_until_listening(port: int) -> None:
    for _ in range(400):
        with suppress(OSError), socket.create_connection(("127.0.0.1", port), 0.1):
            return
        time.sleep(0.05)
    raise AssertionError("the MCP server does not listen")


@pytest.fixture(scope="module")
def mcp_url() -> Iterator[str]:
    with serve_mcp() as url:
        yield url


@pytest.fixture(params=["stdio", "http"])
def place(request: pytest.FixtureRequest) -> dict[str, Any]:
    """The part of a source that says where the server is, for both ways to reach it."""
    if request.param == "stdio":
        return {"command": SERVER}
    return {"url": request.getfixturevalue("mcp_url")}


def tool(place: dict[str, Any], name: str, **source: Any) -> Tool:
    return Tool(name, "d", {"type": "object"}, {"kind": "mcp", "seconds": 20, **place, **source})


def sandbox(*tools: Tool, fixtures: Any = None) -> ToolSandbox:
    hosts = frozenset("/".join(tool.source["url"].split("/")[:3]) for tool in tools if "url" in tool.source)
    access = ToolAccess(
        hosts=hosts,
        commands=frozenset({tuple(SERVER), tuple(BROKEN), tuple(NOWHERE)}),
        secrets={"TOKEN": Secret(TOKEN, hosts)},
    )
    return ToolSandbox({tool.name: tool for tool in tools}, fixtures or {}, access=access)


async def test_the_structured_content_is_the_result(place: dict[str, Any]) -> None:
    async with sandbox(tool(place, "get_stock")) as tools:
        outcome = await tools.call("get_stock", '{"link_id": 3}')
    assert (outcome.result, outcome.error) == ({"name": "羊绒围巾", "stock": 12, "link_id": 3}, None)


async def test_the_server_may_know_the_tool_by_another_name_and_say_text(place: dict[str, Any]) -> None:
    async with sandbox(tool(place, "say", tool="shop.say")) as tools:
        said = [(await tools.call("say", json.dumps({"text": text}))).result for text in ("你好", '{"a": 1}')]
    assert said == ["你好", {"a": 1}]


async def test_select_takes_the_result_out_of_the_answer(place: dict[str, Any]) -> None:
    async with sandbox(tool(place, "get_stock", select="stock")) as tools:
        assert (await tools.call("get_stock", '{"link_id": 3}')).result == 12


@pytest.mark.parametrize(
    ("name", "arguments", "error"),
    [
        ("fail", {}, "server_error: Error executing tool fail"),
        (
            "get_stock",
            {"link_id": "three"},
            "server_error: Error executing tool get_stock: 1 validation error",
        ),
        ("no_such_tool", {}, "server_error: Unknown tool: no_such_tool"),
        ("huge", {}, "malformed_result: the answer has more than 1000000"),
    ],
)
async def test_what_the_server_refuses_is_an_error_with_its_code(
    place: dict[str, Any], name: str, arguments: dict[str, Any], error: str
) -> None:
    async with sandbox(tool(place, name)) as tools:
        outcome = await tools.call(name, json.dumps(arguments))
    assert outcome.result is None
    assert (outcome.error or "").startswith(error), outcome.error


async def test_a_slow_call_is_left_and_the_next_one_is_answered(place: dict[str, Any]) -> None:
    tools = [tool(place, "get_stock"), tool(place, "sleep", seconds=0.3)]
    async with sandbox(*tools) as opened:
        await opened.call("get_stock", '{"link_id": 3}')
        slept = await opened.call("sleep", '{"seconds": 30}')
        after = await opened.call("get_stock", '{"link_id": 4}')
    assert slept.error == "timeout: no answer within 0.3 seconds"
    assert 250 < slept.ms < 1500
    assert after.error is None


async def test_calls_of_one_turn_share_one_server_and_go_out_together() -> None:
    tools = [tool({"command": SERVER}, "meet"), tool({"command": SERVER}, "look_around")]
    async with sandbox(*tools) as opened:
        meetings = [opened.call("meet", '{"guests": 8}') for _ in range(8)]
        looks = [opened.call("look_around", "{}") for _ in range(2)]
        outcomes = await asyncio.gather(*meetings, *looks)
    # None of the eight ends before all of them are under way at one server.
    assert [outcome.error for outcome in outcomes] == [None] * 10
    assert outcomes[-1].result == outcomes[-2].result


async def test_a_started_server_sees_nothing_of_ours_and_is_gone_afterwards(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LLM_API_KEY", "sk-ours")
    async with sandbox(tool({"command": SERVER}, "look_around")) as tools:
        seen: Any = (await tools.call("look_around", "{}")).result
    assert "LLM_API_KEY" not in seen["environment"]
    assert seen["cwd"] not in {str(Path.cwd()), os.environ.get("HOME")}
    with pytest.raises(ProcessLookupError):
        os.kill(seen["pid"], 0)


async def test_a_server_that_ends_in_a_call_is_started_again_for_the_next() -> None:
    tools = [tool({"command": SERVER}, name) for name in ("end", "get_stock")]
    async with sandbox(*tools) as opened:
        ended = await opened.call("end", "{}")
        after = await opened.call("get_stock", '{"link_id": 3}')
    assert (ended.error or "").startswith("connection: ")
    assert after.error is None


@pytest.mark.parametrize("command", [BROKEN, NOWHERE])
async def test_a_server_that_does_not_start_is_a_connection_error(command: list[str]) -> None:
    async with sandbox(tool({"command": command}, "get_stock")) as tools:
        outcomes = [await tools.call("get_stock", "{}") for _ in range(2)]
    assert all((outcome.error or "").startswith("connection: ") for outcome in outcomes)


@pytest.mark.parametrize(
    "path", ["/html", "/status/500", "/status/404", "/reset", "/huge", "/gzip", "/elsewhere"]
)
async def test_what_is_no_mcp_server_is_an_error_at_once(shop: Shop, path: str) -> None:
    began = time.monotonic()
    async with sandbox(tool({"url": f"{shop.url}{path}"}, "get_stock", seconds=8)) as tools:
        outcome = await tools.call("get_stock", "{}")
    assert outcome.error is not None
    assert outcome.error.split(":")[0] in {"connection", "server_error", "malformed_result", "not_found"}, (
        outcome.error
    )
    assert time.monotonic() - began < 5


async def test_a_secret_goes_to_the_server_and_does_not_come_back(mcp_url: str) -> None:
    source = tool({"url": mcp_url}, "get_key", headers={"X-Key": "${secret:TOKEN}"})
    async with sandbox(source) as tools:
        outcome = await tools.call("get_key", "{}")
    assert outcome.result == {"key": "***"}


@pytest.mark.parametrize("command", [SERVER, [*SERVER, "more"], SERVER[:1]])
async def test_only_whole_command_lines_that_were_granted_are_started(command: list[str]) -> None:
    tools = {"look_around": tool({"command": command}, "look_around")}
    granted = ToolAccess(commands=frozenset({(*SERVER, "other")}))
    async with ToolSandbox(tools, {}, access=granted) as opened:
        outcome = await opened.call("look_around", "{}")
    assert (outcome.error or "").startswith("permission_denied: the command ")


async def test_a_run_that_is_cancelled_leaves_no_server_behind() -> None:
    seen: asyncio.Future[int] = asyncio.get_running_loop().create_future()

    async def run() -> None:
        tools = [tool({"command": SERVER}, name) for name in ("look_around", "sleep")]
        async with sandbox(*tools) as opened:
            there: Any = (await opened.call("look_around", "{}")).result
            seen.set_result(there["pid"])
            await opened.call("sleep", '{"seconds": 30}')

    running = asyncio.create_task(run())
    pid = await asyncio.wait_for(seen, 20)
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


async def test_a_close_while_a_server_starts_ends_it_too() -> None:
    opened = sandbox(tool({"command": SERVER}, "get_stock"))
    call = asyncio.create_task(opened.call("get_stock", '{"link_id": 3}'))
    await asyncio.sleep(0.1)
    await opened.close()
    outcome = await call
    assert outcome.error == "connection: the session was closed"


async def test_fixtures_of_the_case_answer_instead_of_the_server() -> None:
    fixtures = {"get_stock": [{"arguments": {}, "result": "replayed"}]}
    async with sandbox(tool({"command": NOWHERE}, "get_stock"), fixtures=fixtures) as tools:
        assert (await tools.call("get_stock", "{}")).result == "replayed"


async def test_a_server_that_does_not_answer_the_end_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mcp_source, "_GOODBYE_SECONDS", 0.3)
    before = asyncio.all_tasks()
    with serve_silent() as (url, asked):
        opened = sandbox(tool({"url": url}, "get_stock"))
        outcome = await opened.call("get_stock", "{}")
        began = time.monotonic()
        await opened.close()
        took = time.monotonic() - began
    assert (outcome.result, "DELETE" in asked) == (12, True)
    assert took < 2
    assert asyncio.all_tasks() == before


async def test_an_error_of_a_server_is_cut_after_the_secret_is_out(mcp_url: str) -> None:
    source = tool({"url": mcp_url}, "refuse", headers={"X-Key": "${secret:TOKEN}"})
    async with sandbox(source) as tools:
        outcome = await tools.call("refuse", "{}")
    assert (outcome.error or "").startswith("server_error: ")
    assert (outcome.error or "").endswith("x***")
