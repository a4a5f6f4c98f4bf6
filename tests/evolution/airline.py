"""A harness made of a real benchmark's material: the airline policy and the tool schemas of tau-bench."""

import json
from functools import cache
from typing import Any

import yaml

from tests.evolution.intake import DATA, TAU_BENCH

NAME = "airline"
HARNESS = """\
format: 1
name: airline
kind: agent
prompt:
  - {name: policy, file: prompts/policy.md}
  - {name: request, file: prompts/request.md, role: user}
reply_skill_required: false
"""
REQUEST = "{% for message in request.messages %}{{ message.content }}\n{% endfor %}"


def airline_files() -> dict[str, bytes]:
    """The policy as a prompt section, as it is, and each tool answering from the case's fixtures."""
    schemas = json.loads((DATA / "tau_bench" / "airline_tools_openai_schema.json").read_text())
    tools = {f"tools/{each['function']['name']}.yaml": _tool(each["function"]) for each in schemas}
    return {
        "harness.yaml": HARNESS.encode(),
        "prompts/policy.md": (DATA / "tau_bench" / "airline_policy.md").read_bytes(),
        "prompts/request.md": REQUEST.encode(),
        **tools,
    }


def _tool(schema: dict[str, Any]) -> bytes:
    return yaml.safe_dump({**schema, "source": {"kind": "fixture"}}, sort_keys=False).encode()


@cache
def raw_turns(source_id: str) -> list[list[dict[str, Any]]]:
    """The messages of a record as the file has them, without the prompt, by turn: each but the first begins with the
    agent's message.

    It is the one of an id like gpt-4o-airline.json/task-3/trial-1.
    """
    task, trial = (int(part.rsplit("-", 1)[1]) for part in source_id.split("/")[-2:])
    record = next(
        each for each in _records() if (each["task_id"], each["trial"]) == (task, trial)
    )
    turns: list[list[dict[str, Any]]] = [[]]
    for message in record["traj"]:
        if message["role"] == "assistant":
            turns.append([])
        if message["role"] != "system":
            turns[-1].append(message)
    return turns


@cache
def _records() -> list[dict[str, Any]]:
    records: list[dict[str, Any]] = json.loads(TAU_BENCH.read_text())
    return records
