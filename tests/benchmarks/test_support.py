"""What the benchmark stands on: an endpoint that counts right, and answers that our judge takes."""

import http.client
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from harness_repo.format.harness import read_harness
from harness_repo.format.json_schema import find_violation
from harness_repo.snapshot import Snapshot
from harness_repo.starters import starter_files
from tests.benchmarks.support import bare_loops
from tests.benchmarks.support.answers import answer
from tests.benchmarks.support.installation import Endpoint, run_endpoint
from tests.benchmarks.support.material import agent_files, judge_files, judge_text
from tests.benchmarks.support.rows import start_line


@pytest.fixture(scope="module")
def running() -> Iterator[Endpoint]:
    with run_endpoint() as endpoint:
        yield endpoint


def ask(endpoint: Endpoint, text: str) -> int:
    """The status of one call; 0 when the connection was cut off."""
    connection = http.client.HTTPConnection("127.0.0.1", endpoint.port, timeout=10)
    body = {"model": "agent-3", "messages": [{"role": "user", "content": text}]}
    try:
        connection.request("POST", "/v1/chat/completions", json.dumps(body))
        return connection.getresponse().status
    except ConnectionError:
        return 0
    finally:
        connection.close()


def content(request: dict[str, Any]) -> dict[str, Any]:
    completion = json.loads(answer(json.dumps(request).encode())[1])
    message: dict[str, Any] = completion["choices"][0]["message"]
    return message


@pytest.mark.parametrize("number", [6, 7, 8])
def test_a_verdict_fits_the_schema_of_the_judge_that_ships(number: int) -> None:
    judge = read_harness(Snapshot(starter_files("judge")))
    asked = {"role": "user", "content": judge_text("salt", number, "It was delivered.")}
    said = content({"model": "agent-3", "messages": [asked], "response_format": {"type": "json_schema"}})
    assert judge.reply_schema
    assert find_violation(judge.reply_schema, json.loads(said["content"])) is None


@pytest.mark.parametrize("files", [agent_files(tools=True), agent_files(tools=False), judge_files()])
def test_the_harnesses_have_no_problem(files: dict[str, bytes]) -> None:
    assert not read_harness(Snapshot(files)).problems


def test_the_agent_calls_a_tool_three_times_and_then_replies() -> None:
    messages: list[dict[str, Any]] = [{"role": "user", "content": "order No. 1"}]
    calls = 0
    while said := content({"model": "agent-3", "messages": messages, "tools": [{}]}).get("tool_calls"):
        calls += len(said)
        messages += [{"role": "tool", "content": "{}"} for _ in said]
    assert calls == 3


def test_what_was_asked_and_answered_before_is_counted(running: Endpoint) -> None:
    running.configure(latency_ms=0)
    assert [ask(running, text) for text in ("one", "two", "one")] == [200, 200, 200]
    stats = running.stats()
    assert (stats["calls"], stats["again"], stats["repeated"], stats["in_flight"]) == (3, 1, 1, 0)


def test_a_call_whose_client_has_gone_is_not_in_flight_any_more(running: Endpoint) -> None:
    """As with servers that end what nobody waits for: a killed worker's calls do not count beside its successor's."""
    running.configure(latency_ms=3_600_000)
    connection = http.client.HTTPConnection("127.0.0.1", running.port, timeout=10)
    connection.request("POST", "/v1/chat/completions", "{}")
    wait_for(running, in_flight=1, abandoned=0)
    connection.close()
    wait_for(running, in_flight=0, abandoned=1)


def wait_for(endpoint: Endpoint, **counts: int) -> None:
    deadline = time.monotonic() + 10
    while {name: endpoint.stats()[name] for name in counts} != counts:
        assert time.monotonic() < deadline, endpoint.stats()
        time.sleep(0.01)


@pytest.mark.parametrize(("fault", "status"), [("p429", 429), ("p500", 500), ("p_reset", 0)])
def test_a_fault_strikes_and_is_no_answer(running: Endpoint, fault: str, status: int) -> None:
    running.configure(latency_ms=0, **{fault: 1.0})
    assert ask(running, "one") == status
    assert running.stats()["ok"] == 0


def test_the_same_seed_draws_the_same_faults(running: Endpoint) -> None:
    drawn = []
    for _ in range(2):
        running.configure(latency_ms=0, p429=0.3, p500=0.3, seed=5)
        drawn.append([ask(running, "one") for _ in range(20)])
    assert drawn[0] == drawn[1]
    assert set(drawn[0]) == {200, 429, 500}


@pytest.mark.parametrize("client", [*bare_loops.CLIENTS, bare_loops.THREADS])
# With the calls of one case: policy and judge; with tools three turns more.
@pytest.mark.parametrize("case", [([], 2), (["--tools"], 5)])
def test_a_bare_loop_makes_each_call_once_and_keeps_a_line_per_case(
    running: Endpoint,
    client: str,
    case: tuple[list[str], int],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    extra, calls = case
    running.configure(latency_ms=20)
    out = tmp_path / "bare.jsonl"
    arguments = [client, running.base_url, "--cases", "7", "--concurrency", "3", "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["bare_loops", *arguments, *extra])

    bare_loops.main()

    stats, lines = running.stats(), [json.loads(line) for line in out.read_text().splitlines()]
    assert (stats["calls"], stats["again"]) == (7 * calls, 0)
    assert stats["peak"] <= 3
    assert sorted(line["case"] for line in lines) == list(range(1, 8))
    assert all(line["scores"]["accuracy"] in (0, 1) for line in lines)


def test_of_several_starts_the_slowest_counts() -> None:
    line = start_line("c20", [{"start_s": 0.4}, {"start_s": 1.2}, {"start_s": 0.3}])
    assert (line.figures, line.is_met) == ({"start_s": 1.2}, False)
