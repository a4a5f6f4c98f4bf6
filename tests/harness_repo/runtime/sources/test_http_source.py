import json
from typing import Any

import pytest

from harness_repo.format.tools import Tool
from harness_repo.runtime.access import Secret, ToolAccess
from harness_repo.runtime.computing import Allowance, TooMuchComputing
from harness_repo.runtime.sandbox import ToolOutcome, ToolSandbox
from tests.harness_repo.runtime.sources.web import Shop

TOKEN = "tok-5f0c9a"


def access(shop: Shop, *, secret_hosts: frozenset[str] | None = None) -> ToolAccess:
    hosts = frozenset({shop.url})
    return ToolAccess(
        hosts=hosts, secrets={"TOKEN": Secret(TOKEN, hosts if secret_hosts is None else secret_hosts)}
    )


def tool(url: str, **source: Any) -> Tool:
    return Tool("t", "d", {"type": "object"}, {"kind": "http", "url": url, "seconds": 5, **source})


async def ask(shop: Shop, path: str, granted: ToolAccess | None = None, /, **source: Any) -> ToolOutcome:
    arguments = source.pop("arguments", {})
    tools = {"t": tool(f"{shop.url}{path}", **source)}
    async with ToolSandbox(tools, {}, access=granted or access(shop)) as sandbox:
        return await sandbox.call("t", json.dumps(arguments))


async def test_the_answer_is_the_result(shop: Shop) -> None:
    outcome = await ask(shop, "/items/{link_id}", arguments={"link_id": 3})
    assert outcome.result == {"name": "羊绒围巾", "price": 89, "options": [{"sku": 1}]}
    assert (outcome.error, outcome.fault) == (None, None)
    assert outcome.ms > 0


@pytest.mark.parametrize(
    ("path", "error"),
    [
        ("/html", "malformed_result: not JSON"),
        ("/nan", "malformed_result: not JSON: NaN is not JSON"),
        ("/deep", "malformed_result: not JSON: nested"),
        ("/latin", "malformed_result: not JSON"),
        ("/huge", "malformed_result: the answer has more than 1000000 bytes"),
        ("/large", "malformed_result: the result has 2000"),
        ("/gzip", "malformed_result: the answer is compressed, which was not asked for"),
        ("/reset", "connection: "),
        ("/short", "connection: "),
        ("/status/500", "server_error: 500 Internal Server Error"),
        ("/status/503", "server_error: 503 Service Unavailable"),
        ("/status/429", "server_error: 429 Too Many Requests"),
        ("/status/404", "not_found: 404 Not Found"),
        ("/status/401", "permission_denied: 401 Unauthorized"),
        ("/status/403", "permission_denied: 403 Forbidden"),
        ("/status/422", 'bad_arguments: 422 Unprocessable Entity {"error": "link_id is too large"}'),
        ("/status/999", "server_error: 999 unknown status"),
        ("/elsewhere", "server_error: the service redirects to another host"),
        ("/loop", "server_error: more than 3 redirects"),
    ],
)
async def test_whatever_a_service_does_is_an_error_with_its_code(shop: Shop, path: str, error: str) -> None:
    outcome = await ask(shop, path)
    assert outcome.result is None
    assert (outcome.error or "").startswith(error), outcome.error


@pytest.mark.parametrize("path", ["/slow", "/drip"])
async def test_a_service_that_takes_too_long_is_left(shop: Shop, path: str) -> None:
    outcome = await ask(shop, path, seconds=0.2)
    assert outcome.error == "timeout: no answer within 0.2 seconds"
    assert 150 < outcome.ms < 650


async def test_nobody_listening_is_a_connection_error(shop: Shop) -> None:
    granted = ToolAccess(hosts=frozenset({"http://127.0.0.1:9"}))
    tools = {"t": tool("http://127.0.0.1:9/x")}
    async with ToolSandbox(tools, {}, access=granted) as sandbox:
        outcome = await sandbox.call("t", "{}")
    assert (outcome.error or "").startswith("connection: ConnectError")


@pytest.mark.parametrize(("path", "result"), [("/empty", None), ("/null", None), ("/bom", {"a": 1})])
async def test_odd_answers_that_are_results(shop: Shop, path: str, result: object) -> None:
    outcome = await ask(shop, path)
    assert (outcome.result, outcome.error) == (result, None)


async def test_a_redirect_within_the_host_is_followed(shop: Shop) -> None:
    outcome = await ask(shop, "/moved")
    assert isinstance(outcome.result, dict)
    assert outcome.result["price"] == 89


async def test_arguments_go_into_path_query_and_body(shop: Shop) -> None:
    await ask(
        shop,
        "/items/{name}?in={region}",
        method="PUT",
        query={"page": "{page}", "left": "{out}", "tags": "{tags}", "fixed": 1},
        body={"id": "{id}", "text": "no. {id}", "out": "{out}", "list": ["{flag}", None]},
        arguments={
            "name": "a/../b c?d=1&e",
            "region": "北京&x=1",
            "page": 2,
            "tags": ["x", "y"],
            "id": 7,
            "flag": True,
        },
    )
    asked = shop.requests[0]
    assert asked["path"] == "/items/a%2F..%2Fb%20c%3Fd%3D1%26e"
    assert asked["query"] == [
        ("in", "北京&x=1"), ("page", "2"), ("tags", "x"), ("tags", "y"), ("fixed", "1"),
    ]  # fmt: skip
    assert json.loads(asked["body"]) == {"id": 7, "text": "no. 7", "list": [True, None]}


async def test_a_post_without_a_body_of_its_own_sends_the_arguments(shop: Shop) -> None:
    await ask(shop, "/echo", method="POST", arguments={"a": [1]})
    assert json.loads(shop.requests[0]["body"]) == {"a": [1]}


@pytest.mark.parametrize("argument", ["..", ".", "", {"a": 1}, None, "\ud800"])
async def test_an_argument_cannot_lead_elsewhere(shop: Shop, argument: object) -> None:
    outcome = await ask(shop, "/items/{name}", arguments={"name": argument})
    assert (outcome.error or "").startswith("bad_arguments: ")
    assert shop.requests == []


async def test_select_takes_the_result_out_of_the_answer(shop: Shop) -> None:
    outcome = await ask(shop, "/items/3", select="options[?sku == {sku}] | [0]", arguments={"sku": 1})
    assert outcome.result == {"sku": 1}
    outcome = await ask(shop, "/items/3", select="options[?sku == {sku}] | [0]", arguments={"sku": 2})
    assert outcome.error == "not_found"


async def test_select_comes_before_the_limit_of_size(shop: Shop) -> None:
    assert (await ask(shop, "/large", select="[1]")).result == 1


async def test_a_secret_goes_to_its_host_and_is_seen_nowhere(shop: Shop) -> None:
    outcome = await ask(shop, "/echo", headers={"Authorization": "Bearer ${secret:TOKEN}"})
    assert shop.requests[0]["headers"]["authorization"] == f"Bearer {TOKEN}"
    assert isinstance(outcome.result, dict)
    assert outcome.result["headers"]["authorization"] == "Bearer ***"
    assert TOKEN not in repr(outcome) + repr(access(shop))


@pytest.mark.parametrize(
    ("hosts", "header", "error"),
    [
        (
            frozenset({"other.example"}),
            "TOKEN",
            "permission_denied: the secret TOKEN may not go to http://127.0.0.1",
        ),
        # The same host by https only.
        (
            frozenset({"127.0.0.1"}),
            "TOKEN",
            "permission_denied: the secret TOKEN may not go to http://127.0.0.1",
        ),
        (None, "OTHER", "permission_denied: there is no secret OTHER"),
    ],
)
async def test_a_secret_of_another_host_or_of_nobody_stops_the_call(
    shop: Shop, hosts: frozenset[str] | None, header: str, error: str
) -> None:
    granted = access(shop, secret_hosts=hosts)
    outcome = await ask(shop, "/echo", granted, headers={"X-Key": f"${{secret:{header}}}"})
    assert (outcome.error or "").startswith(error)
    assert TOKEN not in repr(outcome)
    assert shop.requests == []


async def test_a_redirect_to_another_host_takes_no_secret_along(shop: Shop) -> None:
    # 127.0.0.1 under another name is another host.
    shop.elsewhere = f"http://localhost:{shop.port}/echo"
    granted = ToolAccess(
        hosts=frozenset({shop.url, f"http://localhost:{shop.port}"}),
        secrets={"TOKEN": Secret(TOKEN, frozenset({shop.url}))},
    )
    outcome = await ask(shop, "/elsewhere", granted, headers={"X-Key": "${secret:TOKEN}"})
    assert outcome.error == "server_error: the service redirects to another host"
    assert len(shop.requests) == 1


async def test_nothing_is_asked_of_a_host_that_was_not_granted(shop: Shop) -> None:
    outcome = await ask(shop, "/items/3", ToolAccess(hosts=frozenset({"127.0.0.1"})))
    assert outcome.error == (f"permission_denied: {shop.url} is not a host that tools may reach")
    assert shop.requests == []


async def test_fixtures_of_the_case_answer_instead_of_the_service(shop: Shop) -> None:
    fixtures = {"t": [{"arguments": {"a": 1}, "result": "replayed"}]}
    async with ToolSandbox({"t": tool(f"{shop.url}/items/3")}, fixtures, access=access(shop)) as sandbox:
        assert (await sandbox.call("t", '{"a": 1}')).result == "replayed"
        assert (await sandbox.call("t", '{"a": 2}')).error == "not_found"
    assert shop.requests == []


async def test_an_expression_that_computes_without_end_ends_the_run(shop: Shop) -> None:
    inner = "[" + ",".join(["@"] * 200) + "][]"
    select = f"{inner}|{inner}|{inner}|{inner}"
    tools = {"t": tool(f"{shop.url}/items/3", select=select)}
    async with ToolSandbox(tools, {}, access=access(shop)) as sandbox:
        prepared = sandbox.prepare("t", "{}")
        assert not isinstance(prepared, ToolOutcome)
        with pytest.raises(TooMuchComputing, match="reading the result of t"):
            await sandbox.perform(prepared, Allowance(0.2))


@pytest.mark.parametrize("secret", ["TOPSECRETVALUE_abcdefghijklmnop", 'TOP"SECRET\\VALUE', "TOP  SECRET"])
async def test_no_part_of_a_secret_stands_at_the_end_of_an_error(shop: Shop, secret: str) -> None:
    hosts = frozenset({shop.url})
    granted = ToolAccess(hosts, secrets={"TOKEN": Secret(secret, hosts)})
    for before in range(230, 290, 6):
        path = f"/padded/{before}"
        outcome = await ask(shop, path, granted, headers={"Authorization": "Bearer ${secret:TOKEN}"})
        assert (outcome.error or "").startswith("bad_arguments: 400 Bad Request")
        assert "TOP" not in (outcome.error or "")
