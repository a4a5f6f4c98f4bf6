"""The examples of agents that are not ours, run as their README says."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

import harness_repo
from harness_repo.runtime.command_runner import CommandRunner, CommandSettings
from harness_repo.runtime.http_runner import HttpRunner, HttpSettings
from harness_repo.runtime.runner import RunCase
from harness_repo.snapshot import Snapshot
from harness_repo.starters import starter_files

EXAMPLES = Path(harness_repo.__file__).parent / "examples"
COMMIT = "abcdef0" + "1" * 33
CASE = RunCase(
    "stock-1",
    {"danmaku": [{"user": "Ann", "text": "还有库存吗？"}]},
    fixtures={
        "get_stock": [{"arguments": {"link_id": 1}, "result": {"stock": 12}}],
        "get_coupon_info": [{"arguments": {}, "result": {"coupon": "20"}}],
    },
    commit=COMMIT,
)


def read_version(commit: str) -> Snapshot:
    """The starter with the agent in it."""
    assert commit == COMMIT
    agent = (EXAMPLES / "command_agent/agent.py").read_bytes()
    return Snapshot(
        {**starter_files("live_commerce"), "agent.py": agent}, executables=frozenset({"agent.py"})
    )


@pytest.mark.parametrize("command", [("./agent.py",), ("python3", "agent.py")])
async def test_command_agent_answers_from_the_skills_of_its_version(command: tuple[str, ...]) -> None:
    got = await CommandRunner(CommandSettings(command, seconds=30, memory_mb=512), read_version).run(CASE)
    assert (got.status, got.error) == ("ok", None)
    assert got.reply == "stock: 12"
    assert got.evidence() == [{"tool": "get_stock", "arguments": {"link_id": 1}, "result": {"stock": 12}}]
    assert got.runner["stderr"] == "answered stock-1"


@pytest.fixture
def server() -> Iterator[str]:
    script = [sys.executable, str(EXAMPLES / "http_agent/server.py"), "0"]
    environment = {**os.environ, "AGENT_TOKEN": "Bearer t"}
    with subprocess.Popen(
        script, env=environment, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as process:
        assert process.stdout is not None
        yield process.stdout.readline().strip()
        process.kill()


async def test_http_agent_answers_with_its_token_only(server: str) -> None:
    settings = HttpSettings(server, seconds=30, headers={"Authorization": "Bearer t"})
    got = await HttpRunner(settings).run(CASE)
    assert (got.status, got.reply) == ("ok", "You asked: 还有库存吗？ (version abcdef0)")
    assert got.usage.completion_tokens > 0
    refused = await HttpRunner(replace(settings, headers={})).run(CASE)
    assert (refused.status, refused.runner) == ("runner_error", {"kind": "http", "status": 401})
    assert json.dumps({"error": "no such token"}) in (refused.error or "")
